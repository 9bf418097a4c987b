"""A session that embedlog opens shows errors, and nothing that only looks like one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from embedlog.spark.pipeline.running.quiet_daemon import QuietTraceback
from tests.spark.conftest import need_spark

ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = """
from embedlog.spark.pipeline.running.spark_session import open_session
spark = open_session("quiet", master="local[2]")
assert spark.range(100_000).rdd.map(lambda row: row).take(1)
spark.stop()
"""


def test_only_workers_whose_reader_has_left_are_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    for error, is_shown in ((BrokenPipeError(), False), (ConnectionResetError(), False),
                            (ValueError("a"), True), (OSError("b"), True)):  # fmt: skip
        try:
            raise error
        except Exception:
            QuietTraceback().print_exc()
        assert (type(error).__name__ in capsys.readouterr().err) == is_shown
    assert "no error" in QuietTraceback().format_exception_only(ValueError("no error"))[0]


@pytest.mark.slow
@pytest.mark.timeout(300)  # a busy machine may need long to start a JVM
def test_a_session_begins_and_ends_without_a_line() -> None:
    need_spark()
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # The JVM itself prints this before it runs anything; nothing but a closed stderr silences it.
    left = [line for line in done.stderr.splitlines() if "incubator modules" not in line]
    assert left == []
