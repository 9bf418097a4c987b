"""A broker continues the transactions that another one left open, or decided without markers.

Apache Kafka wrote the logs and embedlog opens them, and the other way round: the data, the state of
the transactions and the offsets. Each broker has its own metadata, so the logs are put into folders
that the successor has created.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import embedlog
from embedlog.broker import topics
from embedlog.common import uuid_to_text
from embedlog.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tests.golden.group_requests import fetch_offsets
from tests.golden.requests import Topic, creation, fetch, list_offsets, produce
from tests.golden.run import Run
from tests.golden.targets import Address
from tests.golden.transaction_requests import (
    Producer,
    batch,
    began,
    end,
    markers,
    owned,
    settle,
    txn_commit,
    warm_up_transactions,
)
from tests.support.kafka import real_kafka
from tests.support.tools import need_jars
from wire.schemas.describe_transactions import DescribeTransactionsRequest
from wire.schemas.metadata import MetadataRequest

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PARTITIONS = 2
GROUP = "group"
METADATA = "partition.metadata"
UNCOMMITTED, COMMITTED = 0, 1
STUCK_MS = 300


class Side(NamedTuple):
    """A kind of broker, and the directory of its logs."""

    name: str
    directory: Path

    @property
    def data(self) -> Path:
        """Return the directory of its partitions."""
        return self.directory / "data"

    @contextmanager
    def running(self) -> Iterator[Run]:
        """Run a broker over the directory, and yield a client of it."""
        if self.name == "embedlog":
            with embedlog.open(self.data) as cluster:
                for topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
                    assert topics.ensure_internal_topic(cluster.broker().core, topic)
                yield from _asked(cluster.listen("127.0.0.1", 0).address)
            return
        elsewhere = {"metadata.log.dir": str(self.directory / "metadata")}
        with real_kafka(self.directory, settings=elsewhere, heap="384m") as address:
            yield from _asked(address)


def _asked(address: str) -> Iterator[Run]:
    run = Run(Address(address, is_patient=True), "hands")
    try:
        yield run
    finally:
        run.close()


@pytest.fixture(params=["kafka", "embedlog"])
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Side, Side]:
    """The writer and its successor."""
    need_jars("broker")
    names = sorted(("kafka", "embedlog"), key=lambda name: name != request.param)
    writer, successor = (Side(name, tmp_path / name) for name in names)
    for side in (writer, successor):
        side.data.mkdir(parents=True)
    return writer, successor


def make_topic(run: Run) -> Topic:
    """Create the topic on both sides; each gives it an id of its own."""
    warm_up_transactions(run)
    # Keep one segment, although markers are years newer than the records: a fetch reads one
    # segment.
    configs: dict[str, str | None] = {"segment.ms": str(2**63 - 1), "retention.ms": "-1"}
    request = creation("events", partitions=PARTITIONS, configs=configs)
    (made,) = run.setup(request, 7).topics
    assert made.error_code == 0
    return made.name, made.topic_id


def topic_ids(run: Run) -> dict[str, bytes]:
    """Return the id of every topic, including the internal ones."""
    answer = run.setup(MetadataRequest(topics=None), 12)
    return {topic.name: bytes(topic.topic_id) for topic in answer.topics}


def hand_over(writer: Side, successor: Side, ids: dict[str, bytes], *, least: int = 4) -> None:
    """Put the logs into the folders of the successor, which then recovers as after a crash."""
    handed = 0
    for folder in sorted(writer.data.glob("*-*/")):
        logs = [each for each in folder.glob("*.log") if each.stat().st_size]
        if not logs or not folder.name.startswith(("events-", "__transaction_", "__consumer_")):
            continue
        place = successor.data / folder.name
        if not place.exists():
            topic_id = uuid_to_text(ids[folder.name.rpartition("-")[0]])
            place.mkdir()
            (place / METADATA).write_text(f"version: 0\ntopic_id: {topic_id}\n")
        for old in place.iterdir():
            if old.name != METADATA:
                old.unlink()
        for each in folder.iterdir():
            if each.name != METADATA:
                shutil.copy(each, place)
        handed += 1
    assert handed >= least
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        (successor.data / name).unlink(missing_ok=True)


def end_offset(run: Run, isolation: int = COMMITTED) -> int:
    """Return where a reader of the first partition stops."""
    request = list_offsets("events", -1, isolation_level=isolation)
    (partition,) = run.setup(request, 8).topics[0].partitions
    return int(partition.offset)


def aborted(run: Run) -> list[int]:
    """Return the first offsets of the aborted transactions that a read_committed reader gets."""
    answer = run.setup(fetch(("events", b""), 12, isolation_level=COMMITTED), 12)
    (partition,) = answer.responses[0].partitions
    assert partition.error_code == 0
    return sorted(each.first_offset for each in partition.aborted_transactions)


def state(run: Run, transactional_id: str) -> tuple[str, Producer]:
    """Return a transactional id's state from DescribeTransactions."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    answer = run.until(
        lambda answer: answer.transaction_states[0].error_code not in (14, 15, 16),
        request,
        0,
        keep=False,
    )
    (found,) = answer.transaction_states
    assert found.error_code == 0, found
    return found.transaction_state, (found.producer_id, found.producer_epoch)


def offset_of_group(run: Run) -> tuple[int, int]:
    """Return (error code, offset) of the first partition, if it is stable."""
    request = fetch_offsets(GROUP, ("events", [0]), require_stable=True)
    (partition,) = run.setup(request, 9).groups[0].topics[0].partitions
    return partition.error_code, partition.committed_offset


@pytest.mark.parametrize("is_committed", [True, False])
def test_another_broker_continues_the_transactions(
    sides: tuple[Side, Side], is_committed: bool
) -> None:
    writer, successor = sides
    with successor.running() as run:
        make_topic(run)
        ids = topic_ids(run)
    with writer.running() as run:
        topic = make_topic(run)
        done = began(run, "done", (topic, 0))
        run.setup(produce(topic, 9, batch(done, b"aborted"), transactional_id="done"), 9)
        run.setup(end("done", done, commit=False), 5)
        settle(run, "done")
        opened = began(run, "open", (topic, 0))
        run.setup(produce(topic, 9, batch(opened, b"open"), transactional_id="open"), 9)
        run.setup(txn_commit("open", opened, GROUP, topic, (0, 7)), 5)
        stuck = began(run, "stuck", (topic, 0), (topic, 1))
        run.setup(produce(topic, 9, batch(stuck, b"stuck"), transactional_id="stuck"), 9)
        # A marker with a later coordinator epoch fences the present one, which can never write its
        # own.
        run.setup(markers(stuck, (topic, 1), coordinator_epoch=1), 1)
        run.setup(end("stuck", stuck), 5)
        run.let_pass(STUCK_MS)
        assert state(run, "stuck") == ("PrepareCommit", (stuck[0], stuck[1] + 1))
        assert (end_offset(run), aborted(run)) == (2, [0])
    hand_over(writer, successor, ids)
    with successor.running() as run:
        assert state(run, "open") == ("Ongoing", opened)
        assert (end_offset(run), aborted(run)) == (2, [0])
        assert offset_of_group(run) == (88, -1)
        answer = run.setup(end("open", opened, commit=is_committed), 5)
        assert (answer.error_code, answer.producer_epoch) == (0, opened[1] + 1)
        settle(run, "open")
        # The commit was for the writer's topic of that name; embedlog compares the topic's id as
        # well.
        counts = is_committed and successor.name == "kafka"
        assert offset_of_group(run) == (0, 7 if counts else -1)
        assert aborted(run) == ([0] if is_committed else [0, 2])
        # Partitions that already have a marker may get it again.
        settle(run, "stuck")
        assert state(run, "stuck") == ("CompleteCommit", (stuck[0], stuck[1] + 1))
        end_of_all = end_offset(run)
        assert end_of_all == end_offset(run, UNCOMMITTED)
        # Open transactions continue, and used producer ids are not assigned again.
        following = answer.producer_id, answer.producer_epoch
        data = batch(following, b"next")
        run.setup(produce(topic, 12, data, transactional_id="open"), 12)
        assert end_offset(run) == end_of_all
        run.setup(txn_commit("open", following, GROUP, topic, (0, 9)), 5)
        assert offset_of_group(run) == (88, -1)
        ended = run.setup(end("open", following), 5)
        assert ended.error_code == 0
        settle(run, "open")
        assert (end_offset(run), offset_of_group(run)) == (end_of_all + 2, (0, 9))
        new = owned(run, "new")
        assert new[0] not in (done[0], opened[0])
