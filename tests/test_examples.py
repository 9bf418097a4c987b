"""Each example runs, and prints what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"


def run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=ROOT, check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_embedded_queue_keeps_its_jobs(tmp_path: Path) -> None:
    example = str(EXAMPLES / "embedded_queue.py")
    first = run(example, str(tmp_path / "queue"))
    assert first.splitlines() == ["durable up to offset 2", "0 job 0", "1 job 1", "2 job 2"]
    assert run(example, str(tmp_path / "queue")).splitlines()[-1] == "5 job 2"


def test_the_fake_broker_serves_a_unit_test() -> None:
    out = run("-m", "pytest", "-p", "no:cacheprovider", str(EXAMPLES / "fake_broker.py"))
    assert "1 passed" in out


def test_columns_count_every_record() -> None:
    assert run(str(EXAMPLES / "columns.py")) == "100000 records, 400000 bytes of values\n"


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "columns", "embedded_queue", "fake_broker",
    }  # fmt: skip
