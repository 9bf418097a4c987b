"""The tests of this folder can be collected without the packages that only some of them need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OF_PIPELINES = (
    "fastavro", "grpc_tools", "jsonschema", "deltalake", "pyiceberg", "pandas",
    "prometheus_client",
)  # fmt: skip
_WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if {name, name.partition(".")[0]} & set(%r):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "missing",
    [
        OF_PIPELINES,
        ("pyspark", "py4j", *OF_PIPELINES),
        ("pyspark", "py4j", "pyarrow", "google.protobuf", *OF_PIPELINES),
    ],
    ids=["spark alone", "arrow alone", "no extra"],
)
def test_tests_are_collected_without_an_extra(tmp_path: Path, missing: tuple[str, ...]) -> None:
    (tmp_path / "without.py").write_text(_WITHOUT % (missing,))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "without", "--collect-only", "-q", "-m", "",
         "-p", "no:cacheprovider", "tests/spark"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
