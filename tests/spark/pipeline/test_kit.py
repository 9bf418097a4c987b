"""The kit's readers of tables."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from embedlog.spark.pipeline.kit import table_rows


def test_a_table_whose_first_writer_died_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "_log").mkdir()
    assert table_rows("parquet", str(tmp_path)) == []
