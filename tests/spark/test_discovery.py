"""Spark finds the source by itself, and `import embedlog` does not load it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import embedlog
from tests.spark.conftest import need_spark
from tests.spark.logs import filled

DISCOVERY = Path(embedlog.__file__).parent / "spark" / "discovery"

READ = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
frame = spark.read.format("embedlog").option("subscribe", "t").load(sys.argv[1])
print("found", frame.count())
"""


def _run(code: str, *arguments: str) -> str:
    path = os.pathsep.join((str(DISCOVERY), str(DISCOVERY.parent.parent.parent)))
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_without_pyspark_the_module_that_spark_finds_raises_nothing() -> None:
    code = "import sys; sys.modules['pyspark'] = None; import pyspark_embedlog as found; "
    assert _run(code + "print(found.__all__)") == "[]\n"


@pytest.mark.slow
def test_spark_finds_the_format_without_being_told(tmp_path: Path) -> None:
    need_spark()
    with filled(tmp_path / "log", {"t": [7]}):
        assert _run(READ, str(tmp_path / "log")).split() == ["found", "7"]
