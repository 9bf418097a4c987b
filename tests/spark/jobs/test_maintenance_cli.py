"""The commands of maintenance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from embedlog.cli import main
from tests.spark.jobs.logs import read, segmented


@pytest.mark.slow
def test_rewrite_says_by_its_status_that_something_is_left(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log"
    with segmented(path):
        pass
    (tmp_path / "keys").write_bytes(b"k1\nk32\n")
    verb = ["pipeline", "rewrite", str(path), "--keys-file", str(tmp_path / "keys"), "--json"]
    assert main(verb) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["counts"]["erased"] == report["counts"]["left"] == 2
    assert main([*verb, "--roll"]) == 0
    assert not [row for row in read(path) if row[1] in (b"k1", b"k32")]
    assert main(["pipeline", "rewrite", str(path)]) == 2
    assert "nothing is to be done" in capsys.readouterr().err
