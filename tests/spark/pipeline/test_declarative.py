"""The example of Spark Declarative Pipelines runs, and its tables hold what they should."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.timeout(300)  # a busy machine may need long to start a JVM
def test_the_declarative_example_makes_its_tables(tmp_path: Path) -> None:
    for module in ("pyspark", "yaml", "grpc_status"):
        if importlib.util.find_spec(module) is None:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{module} is missing")
    directory = tmp_path / "declarative"
    shutil.copytree(ROOT / "examples/pipelines/declarative", directory)
    spec = directory / "spark-pipeline.yml"
    spec.write_text(
        spec.read_text().replace("file:///tmp/embedlog-declarative", f"file://{tmp_path}/storage")
    )
    subprocess.run([sys.executable, str(directory / "produce_pages.py")], check=True)
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("spark-pipelines")), "run",
            "--conf", f"spark.sql.warehouse.dir={tmp_path}/warehouse",
            "--conf", "spark.ui.enabled=false",
        ],
        cwd=directory, capture_output=True, text=True, check=False, timeout=280,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            # Spark looks for sources in directories of modules, such as an installation's.
            "PYTHONPATH": f"{ROOT / 'embedlog/spark/discovery'}:{ROOT}",
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]

    def table(name: str) -> list[dict[str, object]]:
        files = (tmp_path / "warehouse" / name).glob("*.parquet")
        return [row for file in files for row in pq.read_table(file).to_pylist()]

    assert sorted(row["_offset"] for row in table("clicks")) == [0, 1, 2, 3, 5, 6, 7, 8]
    assert sorted((row["offset"], row["error_stage"]) for row in table("clicks_rejected")) == [
        (4, "rule"),
        (9, "decode"),
    ]
    pages = {row["page"]: row["count"] for row in table("clicks_by_page")}
    assert pages == {"/": 4, "/help": 1, "/cart": 1, "/late": 1, "/bye": 1}
