"""A really compacted log under a share partition: records vanish before, while and after they are
acquired, also between aborted data and control records.
"""

from __future__ import annotations

import pytest

import embedlog
from embedlog.replication.partition import Isolation
from embedlog.sharing.delivery import Cause
from tests.sharing.world import World
from wire.records import build_batch, iter_batches
from wire.records.batch import RecordBatch

LATER = 1_700_000_010_000
COMMITTED = Isolation.LAST_STABLE


@pytest.fixture(params=["false", "true"], ids=["no order", "order of keys"])
def world(request: pytest.FixtureRequest) -> World:
    """A share partition of a compacted topic."""
    made = World(embedlog_share_key_order=request.param)
    request.addfinalizer(made.close)
    settings = {"cleanup.policy": "compact", "segment.ms": "1000"}
    topic = embedlog.ConfigResource("topic", "t")
    made.cluster.admin().alter_configs({topic: settings})
    return made


def compact(world: World) -> None:
    """Begin a segment with another record, and compact the segments before it."""
    world.run_for(2000)
    world.append(build_batch([b"v"], keys=[b"last"], timestamps=LATER))
    world.cluster.maintain()


def kept(world: World) -> list[int]:
    """Return the offsets of data in the log."""
    log = world.partition.log
    found: list[int] = []
    position, end = log.offsets.log_start_offset, log.offsets.high_watermark
    while position < end:
        read = log.reader.read(position, max_bytes=1 << 20, end_offset=end)
        position = read.next_offset
        for batch in iter_batches(read.records):
            assert isinstance(batch, RecordBatch)
            found += [] if batch.is_control else [record.offset for record in batch.records()]
    return found


def offsets(ranges: list[tuple[int, int, int]]) -> list[int]:
    """Return the offsets of acquired ranges."""
    return [offset for first, last, _ in ranges for offset in range(first, last + 1)]


def finish(world: World, isolation: int = Isolation.HIGH_WATERMARK) -> list[int]:
    """Work on the rest of the log as a client does; return the offsets that had a record."""
    done: list[int] = []
    data = set(kept(world))
    while acquired := world.acquire("last", isolation=isolation):
        for first, last, _ in acquired:
            causes = [
                Cause.ACCEPT if offset in data else Cause.GAP for offset in range(first, last + 1)
            ]
            assert world.say("last", first, last, *causes) is None
            done += [offset for offset in range(first, last + 1) if offset in data]
    window = world.share.window
    assert window.start_offset == world.partition.log.offsets.high_watermark
    assert window.batches == []
    return done


def test_a_group_that_begins_later_gets_the_rest(world: World) -> None:
    world.fill("a", "ab", "b", "c")
    compact(world)
    assert kept(world) == [1, 3, 4, 5]
    assert sorted(finish(world)) == [1, 3, 4, 5]


def test_released_records_that_vanish_are_archived(world: World) -> None:
    world.fill("a", "b")
    assert offsets(world.acquire()) == [0, 1]
    assert world.say("one", 0, 1, Cause.RELEASE) is None
    world.fill("ab")
    compact(world)
    assert kept(world) == [2, 3, 4]
    assert sorted(finish(world)) == [2, 3, 4]


def test_held_records_that_vanish_can_be_acknowledged(world: World) -> None:
    world.fill("a", "b")
    assert offsets(world.acquire()) == [0, 1]
    world.fill("ab")
    compact(world)
    assert world.say("one", 0, 0, Cause.ACCEPT) is None
    assert world.say("one", 1, 1, Cause.RELEASE) is None
    assert sorted(finish(world)) == [2, 3, 4]


def test_a_hole_between_released_records_ends_as_a_gap(world: World) -> None:
    world.fill("x", "a", "y")
    assert offsets(world.acquire()) == [0, 1, 2]
    assert world.say("one", 0, 2, Cause.RELEASE) is None
    world.fill("a")
    compact(world)
    assert kept(world) == [0, 2, 3, 4]
    assert sorted(finish(world)) == [0, 2, 3, 4]


def test_a_gap_of_the_stored_state_that_vanishes_is_archived(world: World) -> None:
    world.fill("a", "b", "c")
    world.acquire()
    assert world.say("one", 2, 2, Cause.ACCEPT) is None
    world.fill("ab")
    compact(world)
    world.share.fence()
    world.load()
    assert sorted(finish(world)) == [3, 4, 5]


def test_aborted_data_and_markers_between_holes(world: World) -> None:
    world.fill("a")
    for commits in (False, True, False):
        with world.cluster.producer(transactional_id="w") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("t", b"v", key=b"a").result()
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    world.fill("b")
    # 0 a, 1 aborted a, 2 marker, 3 committed a, 4 marker, 5 aborted a, 6 marker, 7 b
    assert world.acquire(isolation=COMMITTED, record_count_max=2)
    assert world.share.release("one").done()
    compact(world)
    assert kept(world) == [3, 7, 8]
    assert sorted(finish(world, COMMITTED)) == [3, 7, 8]


def test_a_compacted_away_record_does_not_block_its_key(world: World) -> None:
    world.configure(embedlog_share_key_order="true")
    world.fill("a", "b")
    assert offsets(world.acquire()) == [0, 1]
    assert world.say("one", 0, 0, Cause.RELEASE) is None
    world.fill("a")
    compact(world)
    assert offsets(world.acquire("two")) == [2]
