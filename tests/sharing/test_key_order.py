"""The setting `embedlog.share.key.order`: records of one key are worked one after another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog import errors
from embedlog.coordinator.share.state_client import StateBatch
from embedlog.replication.partition import Isolation
from embedlog.runtime.pending import Pending
from embedlog.sharing.acknowledgement import Acknowledgement
from embedlog.sharing.acquisition import BATCH_OPTIMIZED, RECORD_LIMIT
from embedlog.sharing.delivery import Cause
from embedlog.sharing.share_fetch import DelayedShareFetch, FetchPlace, ShareFetchParams
from embedlog.sharing.share_sessions import SessionPlace, ShareSession
from tests.sharing.world import GROUP, LOCK_MS, World
from wire.records.batch import iter_batches
from wire.records.format import HEADER_SIZE


@pytest.fixture
def world() -> Iterator[World]:
    """A share partition of a group that wants the order of keys."""
    made = World(embedlog_share_key_order="true")
    yield made
    made.close()


def offsets(ranges: list[tuple[int, int, int]]) -> list[int]:
    """Return the offsets of acquired ranges."""
    return [offset for first, last, _ in ranges for offset in range(first, last + 1)]


def transact(world: World, *, commits: bool) -> None:
    """Write a record with the key "a" in a transaction."""
    with world.cluster.producer(transactional_id="w") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"v", key=b"a").result()
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()


@pytest.mark.parametrize("mode", [BATCH_OPTIMIZED, RECORD_LIMIT])
def test_a_fetch_gets_the_first_record_of_each_key(world: World, mode: int) -> None:
    world.fill("aabac")
    world.fill("bd")
    assert offsets(world.acquire(mode=mode)) == [0, 2, 4, 6]
    assert world.acquire("two", mode=mode) == []
    assert world.say("one", 0, 0, Cause.ACCEPT) is None
    assert world.acquire("two", mode=mode) == [(1, 1, 1)]
    assert world.say("one", 2, 2, Cause.ACCEPT) is None
    assert world.acquire("two", mode=mode) == [(5, 5, 1)]
    assert world.acquire("two", mode=mode) == []


def test_records_without_a_key_have_no_order(world: World) -> None:
    world.fill("a--a-")
    assert offsets(world.acquire()) == [0, 1, 2, 4]
    assert world.acquire() == []


def test_without_the_setting_keys_have_no_order(world: World) -> None:
    world.configure(embedlog_share_key_order="false")
    world.fill("aaaa")
    assert world.acquire() == [(0, 3, 1)]


@pytest.mark.parametrize("mode", [BATCH_OPTIMIZED, RECORD_LIMIT])
def test_a_fetch_gets_at_most_its_number_in_both_modes(world: World, mode: int) -> None:
    world.fill("abcabc")
    assert world.acquire(mode=mode, record_count_max=2) == [(0, 1, 1)]
    assert world.acquire("two", mode=mode, record_count_max=2) == [(2, 2, 1)]


def test_a_released_record_comes_before_later_ones_of_its_key(world: World) -> None:
    world.fill("aab")
    assert offsets(world.acquire()) == [0, 2]
    assert world.say("one", 0, 0, Cause.RELEASE) is None
    assert world.acquire("two") == [(0, 0, 2)]
    assert world.acquire("three") == []


@pytest.mark.parametrize("cause", [Cause.ACCEPT, Cause.REJECT, Cause.GAP])
def test_the_end_of_a_record_frees_its_key_when_it_is_stored(world: World, cause: int) -> None:
    world.fill("aa")
    world.acquire()
    world.state.is_slow = True
    pending = world.share.acknowledge("one", [Acknowledgement(0, 0, (cause,))])
    assert world.acquire("two") == []
    world.state.go_on()
    assert pending.done()
    assert world.acquire("two") == [(1, 1, 1)]


def test_an_expired_lock_brings_the_same_record_until_the_limit_frees_the_key(
    world: World,
) -> None:
    world.configure(embedlog_share_key_order="true", share_delivery_count_limit="2")
    world.fill("aa")
    assert world.acquire() == [(0, 0, 1)]
    world.run_for(LOCK_MS)
    assert world.acquire() == [(0, 0, 2)]
    world.run_for(LOCK_MS)
    assert world.acquire() == [(1, 1, 1)]


def test_the_end_of_a_session_gives_the_first_record_of_the_key_to_another(world: World) -> None:
    world.fill("aa")
    world.acquire()
    assert world.share.release("one").done()
    assert world.acquire("two") == [(0, 0, 2)]


def test_a_dead_letter_on_its_way_blocks_its_key(world: World) -> None:
    buried: list[Pending[None]] = []

    def bury(_group: str, _partition: object, _rows: list[StateBatch]) -> Pending[None]:
        buried.append(Pending())
        return buried[-1]

    world.context.bury = bury
    world.configure(embedlog_share_key_order="true", errors_deadletterqueue_topic_name="dlq.t")
    world.fill("aa")
    world.acquire()
    assert world.say("one", 0, 0, Cause.REJECT) is None
    assert world.acquire() == []
    buried[0].complete(None)
    assert world.acquire() == [(1, 1, 1)]


def test_records_below_a_new_log_start_free_their_keys(world: World) -> None:
    world.fill("ab")
    world.fill("ab")
    assert offsets(world.acquire()) == [0, 1]
    world.partition.delete_records(1)
    assert world.acquire("two") == [(2, 2, 1)]
    assert world.acquire("two") == []


def test_another_term_reads_the_keys_again(world: World) -> None:
    world.fill("abcab")
    assert offsets(world.acquire()) == [0, 1, 2]
    assert world.say("one", 1, 1, Cause.ACCEPT) is None
    assert world.say("one", 2, 2, Cause.RELEASE) is None
    world.share.fence()
    world.load()
    assert world.acquire("two") == [(0, 0, 1), (2, 2, 2), (4, 4, 1)]
    assert world.acquire("two") == []
    assert world.say("two", 0, 0, Cause.ACCEPT) is None
    assert world.acquire("two") == [(3, 3, 1)]


def test_the_order_begins_with_the_setting_and_ends_with_it(world: World) -> None:
    world.configure(embedlog_share_key_order="false")
    world.fill("aa")
    world.fill("ab")
    assert world.acquire(record_count_max=1) == [(0, 1, 1)]
    world.configure(embedlog_share_key_order="true")
    assert world.acquire("two") == [(3, 3, 1)]
    assert world.say("one", 0, 0, Cause.ACCEPT) is None
    assert world.acquire("two") == []
    assert world.say("one", 1, 1, Cause.RELEASE) is None
    world.fill("b")
    world.configure(embedlog_share_key_order="false")
    assert world.acquire("two") == [(1, 1, 2), (2, 2, 1), (4, 4, 1)]


def test_one_key_holds_up_the_others_only_when_it_fills_the_window(world: World) -> None:
    world.configure(embedlog_share_key_order="true", share_partition_max_record_locks="100")
    world.fill(*["a"] * 98, "b", "a", "c")
    assert offsets(world.acquire()) == [0, 98]
    assert world.share.window.in_flight_count == 100
    assert world.say("one", 98, 98, Cause.ACCEPT) is None
    assert world.acquire() == []
    assert world.say("one", 0, 0, Cause.ACCEPT) is None
    assert offsets(world.acquire()) == [1, 100]


def test_a_batch_larger_than_the_window_comes_in_whole(world: World) -> None:
    world.configure(embedlog_share_key_order="true", share_partition_max_record_locks="100")
    world.fill("ab" * 150)
    assert offsets(world.acquire()) == [0, 1]
    assert world.share.window.in_flight_count == 300


def test_free_keys_are_found_behind_more_bytes_than_a_fetch_may_have(world: World) -> None:
    world.fill(*["a"] * 600, "b")
    assert world.acquire() == [(0, 0, 1), (600, 600, 1)]
    assert world.say("one", 600, 600, Cause.RELEASE) is None
    wish = world.wish("two", record_count_max=1)
    session = ShareSession((GROUP, "two"), None)
    taken = world.share.acquire(session, wish, 100, Isolation.HIGH_WATERMARK)
    assert taken is not None
    assert taken.acquired == [(600, 600, 2)]
    assert len(taken.records) < 100


def test_often_delivered_records_come_alone(world: World) -> None:
    world.configure(embedlog_share_key_order="true", share_delivery_count_limit="3")
    world.fill("abc")
    for count in (1, 2):
        assert world.acquire() == [(0, 2, count)]
        assert world.say("one", 0, 2, Cause.RELEASE) is None
    assert world.acquire() == [(0, 0, 3)]
    assert world.acquire() == [(1, 1, 3)]


def test_aborted_data_blocks_no_key(world: World) -> None:
    world.fill("x")
    transact(world, commits=False)
    world.fill("aa")
    assert offsets(world.acquire(isolation=Isolation.LAST_STABLE)) == [0, 2, 3]
    assert world.acquire(isolation=Isolation.LAST_STABLE) == []


def test_the_key_of_a_control_record_is_none(world: World) -> None:
    transact(world, commits=True)
    transact(world, commits=True)
    assert offsets(world.acquire()) == [0, 1, 3]


def test_the_window_shrinks_after_moves_of_many_records(world: World) -> None:
    world.fill("".join("ab-" for _ in range(100)))
    done = 0
    while acquired := world.acquire():
        for first, last, _ in acquired:
            assert world.say("one", first, last, Cause.ACCEPT) is None
            done += last - first + 1
    assert done == 300
    assert world.share.window.batches == []
    assert world.share.window.start_offset == 300


def test_a_waiting_fetch_gets_a_record_as_soon_as_its_key_is_free(world: World) -> None:
    world.fill("aa")
    world.acquire()
    params = ShareFetchParams(
        world.wish("two"),
        isolation=Isolation.HIGH_WATERMARK,
        max_bytes=1 << 20,
        min_bytes=1,
        max_wait_ms=5000,
    )
    place = FetchPlace(SessionPlace(world.place, answers=False), world.share)
    fetch = DelayedShareFetch(ShareSession((GROUP, "two"), None), [place], params)
    world.core.replica_manager.fetch_purgatory.try_complete_else_watch(fetch, fetch.keys())
    assert not fetch.pending.done()
    assert world.say("one", 0, 0, Cause.ACCEPT) is None
    assert fetch.pending.done()
    assert place.taken is not None
    assert place.taken.acquired == [(1, 1, 1)]


def test_a_failed_write_keeps_the_key_blocked(world: World) -> None:
    world.fill("aa")
    world.acquire()
    world.state.failures = [errors.CoordinatorNotAvailable()]
    assert world.say("one", 0, 0, Cause.ACCEPT) is not None
    assert world.acquire("two") == []


def test_a_batch_that_cannot_be_decoded_has_no_keys(world: World) -> None:
    world.fill("a", "aa")
    files = world.runtime.files
    (path,) = [path for path in files.tree.contents() if path.endswith("/t-0/" + "0" * 20 + ".log")]
    first = next(iter_batches(files.read(path)))
    # The first record of the second batch is longer than the batch.
    files.open(path).write([b"\x7f"], len(first.buffer) + HEADER_SIZE)
    assert world.acquire() == [(0, 0, 1), (1, 2, 1)]
