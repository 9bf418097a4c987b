"""A rolling restart of three brokers under load causes no error in any client."""

from __future__ import annotations

from pathlib import Path

import pytest

import embedlog
from tests.interop.cluster.story import FAST, wait_until_in_sync
from tests.interop.cluster.streams import Programs, begin, end

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]


def test_no_error_reaches_a_producer_or_a_group_member(tmp_path: Path) -> None:
    for folder in ("classes", "streams"):
        (tmp_path / folder).mkdir()
    programs = Programs(tmp_path / "classes")
    names = list(programs.commands)
    with embedlog.open(tmp_path / "data", brokers=3, config=FAST) as cluster:
        streams = begin(cluster, names, programs, tmp_path / "streams")
        try:
            before = {stream.name: len(stream.acknowledged) for stream in streams}
            assert all(before.values()), before
            for node in cluster.brokers:
                node.stop()
                node.start()
                wait_until_in_sync(cluster)
            broken = end(streams)
            assert broken == []
            assert [text for stream in streams for text in stream.errors] == []
            assert all(len(each.acknowledged) > before[each.name] for each in streams)
        finally:
            for stream in streams:
                stream.kill()
