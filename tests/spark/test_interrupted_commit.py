"""A commit that Ctrl-C ends is withdrawn: nobody waits for it, so it must not be made later."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedlog.common import TopicPartition
from embedlog.runtime import real_runtime
from embedlog.spark import committer
from embedlog.storage.staging import exchange
from embedlog.storage.staging.manifest import Manifest, StagedFile
from embedlog.storage.state_files import staged_layout
from tests.spark.logs import filled


def test_an_interrupted_commit_is_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[bool] = []

    def interrupted(*_: object) -> None:
        left.append(staged_layout.has_manifests(real_runtime().files, str(tmp_path)))
        raise KeyboardInterrupt

    with filled(tmp_path, {"t": [1]}):
        pass
    monkeypatch.setattr(exchange, "read_answer", interrupted)
    file = StagedFile(TopicPartition("t", 0), "job/file", size=1, count=1)
    with pytest.raises(KeyboardInterrupt):
        committer.commit(str(tmp_path), Manifest("0" * 32, [file], application="a", version=0))
    assert left == [True]
    assert not staged_layout.has_manifests(real_runtime().files, str(tmp_path))
