"""The files of `__share_group_state` move between Apache Kafka and embedlog.

States are found by topic ids, so embedlog creates its topic with the id that Kafka drew. Kafka's
dump tool prints our records.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from os import urandom
from pathlib import Path

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.runtime import real_runtime
from embedlog.runtime.randomness import Random
from tests.coordinator.share.story import SEGMENT, SETTINGS, make_topic, seen, tell
from tests.golden.run import Run
from tests.golden.targets import Address
from tests.interop import java_tools
from tests.support.kafka import real_kafka
from tests.support.tools import need_jars

pytestmark = [pytest.mark.interop, pytest.mark.slow]

FOLDER = "__share_group_state-0"
KEPT = "partition.metadata"


@contextmanager
def kafka(directory: Path) -> Iterator[Run]:
    """A real broker in this directory."""
    directory.mkdir(exist_ok=True)
    with real_kafka(directory, settings=SETTINGS) as address:
        run = Run(Address(address, is_patient=True), "story")
        yield run
        run.close()


@contextmanager
def ours(directory: Path, topic_id: bytes = b"") -> Iterator[Run]:
    """An embedlog broker in this directory; the first topic that it creates has this id."""
    directory.mkdir(exist_ok=True)
    chosen = [topic_id] if topic_id else []
    runtime = real_runtime()

    def drawn(size: int) -> bytes:
        return chosen.pop() if chosen and size == 16 and is_open else urandom(size)

    is_open = False
    runtime.random = Random(drawn)
    with Cluster(
        directory / "data", runtime=runtime, config=dict(SETTINGS), durability="os"
    ) as cluster:
        is_open = True
        run = Run(Address(cluster.listen("127.0.0.1", 0).address), "story")
        yield run
        run.close()


def move(giver: Path, taker: Path) -> None:
    """Replace the files of the taker's partition by the giver's."""
    source, target = giver / "data" / FOLDER, taker / "data" / FOLDER
    for file in target.iterdir():
        if file.name != KEPT:
            file.unlink()
    for file in source.iterdir():
        if file.name != KEPT:
            shutil.copy(file, target / file.name)
    for left in (taker / "data").glob("*checkpoint*"):
        left.unlink()
    (taker / "data" / ".kafka_cleanshutdown").unlink(missing_ok=True)


@pytest.mark.parametrize("taker", ["kafka", "embedlog"])
def test_another_broker_continues_the_states(taker: str, tmp_path: Path) -> None:
    need_jars("broker")
    theirs, own = tmp_path / "kafka", tmp_path / "embedlog"
    with kafka(theirs) as run:
        topic_id = make_topic(run)
        tell(run, topic_id)
        expected = seen(run, topic_id)
    with ours(own, topic_id) as run:
        assert make_topic(run) == topic_id
        tell(run, topic_id)
        assert seen(run, topic_id) == expected
    if taker == "embedlog":
        move(theirs, own)
        with ours(own) as run:
            assert seen(run, topic_id) == expected
    else:
        move(own, theirs)
        with kafka(theirs) as run:
            run.until(
                lambda answer: answer.results[0].partitions[0].error_code not in (14, 15, 16),
                _busy(topic_id), 0, keep=False,
            )  # fmt: skip
            assert seen(run, topic_id) == expected


def _busy(topic_id: bytes) -> object:
    """Return a read of one of the states."""
    from tests.golden.share_state_requests import read

    return read("busy", topic_id, leader_epoch=1)


def test_kafkas_dump_tool_reads_our_records(tmp_path: Path) -> None:
    need_jars("tools")
    with ours(tmp_path / "embedlog") as run:
        topic_id = make_topic(run)
        tell(run, topic_id)
    segment = tmp_path / "embedlog" / "data" / FOLDER / SEGMENT
    shown = java_tools.run(
        "dump-log", "--share-group-state-decoder", "--print-data-log", "--files", str(segment)
    )
    assert '"groupId":"busy"' in shown
    assert shown.count('"snapshotEpoch"') > 20
    assert "isvalid: false" not in shown
    assert "Exception" not in shown
