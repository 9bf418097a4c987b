"""One share partition: transitions, locks, loading, the stored state, and what ends it."""

from __future__ import annotations

import pytest

from embedlog import errors
from embedlog.coordinator.share.state_client import StateBatch
from embedlog.sharing.acknowledgement import Acknowledgement
from embedlog.sharing.acquisition import RECORD_LIMIT
from embedlog.sharing.delivery import Cause
from embedlog.sharing.share_partition import ACTIVE, FAILED, FENCED, INITIALIZING
from tests.sharing.world import GROUP, LOCK_MS, World
from wire.error_codes import ErrorCode


def code(error: object) -> int:
    """Return the code of an error; 0 for None."""
    if error is None:
        return 0
    assert isinstance(error, errors.KafkaError), error
    return error.code


def test_a_move_waits_until_it_is_stored(world: World) -> None:
    world.fill(4)
    world.acquire()
    world.state.is_slow = True
    told = [Acknowledgement(0, 1, (Cause.RELEASE,))]
    pending = world.share.acknowledge("one", told)
    assert not pending.done()
    assert world.acquire("two") == []  # not acquirable
    assert code(world.say("one", 0, 1, Cause.ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    world.state.go_on()
    assert pending.error() is None
    assert world.acquire("two") == [(0, 1, 2)]


def test_a_session_that_is_over_acquires_nothing(world: World) -> None:
    world.fill(4)
    assert world.acquire(record_count_max=1, mode=RECORD_LIMIT) == [(0, 0, 1)]
    world.sessions["one"].is_over = True
    assert world.acquire() == []
    assert world.acquire("two") == [(1, 3, 1)]


def test_a_move_that_is_not_stored_leaves_the_record_with_its_owner(world: World) -> None:
    world.fill(4)
    world.acquire()
    world.state.failures = [errors.CoordinatorLoadInProgress()]
    error = world.say("one", 0, 3, Cause.ACCEPT)
    assert code(error) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.share.window.start_offset == 0
    assert world.acquire("two") == []
    assert world.say("one", 0, 3, Cause.ACCEPT) is None
    assert world.share.window.start_offset == 4


def test_a_failed_move_frees_a_record_whose_lock_has_expired_meanwhile(world: World) -> None:
    world.fill(2)
    world.acquire()
    world.state.is_slow = True
    world.state.failures = [errors.CoordinatorNotAvailable()]
    pending = world.share.acknowledge("one", [Acknowledgement(0, 1, (Cause.ACCEPT,))])
    world.run_for(LOCK_MS)
    assert world.acquire("two") == []
    world.state.go_on()
    assert pending.error() is not None
    assert world.acquire("two") == [(0, 1, 2)]


def test_writes_go_one_at_a_time_and_carry_the_start_before_their_own_move(world: World) -> None:
    world.fill(9)
    world.acquire()
    world.state.is_slow = True
    first = world.share.acknowledge("one", [Acknowledgement(0, 2, (Cause.ACCEPT,))])
    others = [
        world.share.acknowledge("one", [Acknowledgement(3, 5, (Cause.ACCEPT,))]),
        world.share.acknowledge("one", [Acknowledgement(6, 6, (Cause.RELEASE,))]),
    ]
    assert world.state.waiting_count == 1
    world.state.go_on()
    assert first.done()
    assert world.state.waiting_count == 1  # both others in one write
    world.state.go_on()
    assert all(each.error() is None and each.done() for each in others)
    state = world.state.states[GROUP, world.place]
    assert (state.start_offset, state.complete_count) == (3, 3)
    assert world.stored() == [(3, 5, 2, 1), (6, 6, 0, 1)]
    assert world.share.window.start_offset == 6


def test_one_bad_batch_undoes_the_batches_before_it(world: World) -> None:
    world.fill(10)
    world.acquire()
    told = [Acknowledgement(0, 4, (Cause.ACCEPT,)), Acknowledgement(20, 21, (Cause.ACCEPT,))]
    with pytest.raises(errors.InvalidRequest):
        world.share.acknowledge("one", told)
    assert world.stored() == []
    assert world.say("one", 0, 9, Cause.ACCEPT) is None


def test_a_lock_expires_for_the_part_that_is_still_held(world: World) -> None:
    world.fill(6)
    world.acquire()
    assert world.say("one", 0, 1, Cause.ACCEPT) is None
    world.run_for(LOCK_MS - 1)
    assert world.acquire("two") == []
    world.run_for(1)
    assert world.acquire("two") == [(2, 5, 2)]
    assert world.stored() == [(2, 5, 0, 1)]


def test_renewal_begins_the_lock_anew_for_its_part_only(world: World) -> None:
    world.fill(6)
    world.acquire()
    world.run_for(LOCK_MS // 2)
    assert world.say("one", 0, 1, Cause.RENEW) is None
    world.run_for(LOCK_MS // 2)
    assert world.acquire("two") == [(2, 5, 2)]
    world.run_for(LOCK_MS // 2)
    assert world.acquire("two") == [(0, 1, 2)]
    assert world.stored() == [(0, 5, 0, 1)]


def test_the_lock_limit_lets_only_the_window_come_again(world: World) -> None:
    world.configure(share_partition_max_record_locks="100")
    world.fill(60, 60, 60)
    assert world.acquire(record_count_max=60) == [(0, 59, 1)]
    assert world.acquire(record_count_max=60) == [(60, 119, 1)]
    assert world.acquire() == []
    assert world.say("one", 30, 39, Cause.RELEASE) is None
    assert world.acquire() == [(30, 39, 2)]


def test_a_gap_of_the_stored_state_is_read_again(world: World) -> None:
    world.fill(10)
    world.acquire()
    assert world.say("one", 4, 5, Cause.ACCEPT) is None
    world.share.fence()
    assert world.load().life == ACTIVE
    assert world.acquire("two") == [(0, 3, 1), (6, 9, 1)]
    assert world.acquire("two") == []


def test_a_gap_before_released_records_keeps_the_order(world: World) -> None:
    world.fill(4, 4)
    world.acquire(record_count_max=4)
    world.acquire(record_count_max=4)
    assert world.say("one", 2, 5, Cause.RELEASE) is None
    world.load()
    assert world.acquire("two") == [(0, 1, 1), (2, 5, 2), (6, 7, 1)]


def test_the_start_does_not_pass_a_gap(world: World) -> None:
    world.fill(6)
    world.acquire()
    assert world.say("one", 3, 5, Cause.ACCEPT) is None
    world.load()
    assert world.share.window.start_offset == 0
    world.acquire("two")
    assert world.say("two", 0, 2, Cause.ACCEPT) is None
    assert world.share.window.start_offset == 6


def test_loading_waits_for_the_state_and_takes_no_records_before(world: World) -> None:
    world.fill(3)
    world.state.is_slow = True
    share = world.load()
    assert share.life == INITIALIZING
    assert world.acquire() == []
    with pytest.raises(errors.UnknownTopicOrPartition):
        share.acknowledge("one", [])
    world.state.go_on()
    world.state.is_slow = False
    assert world.acquire() == [(0, 2, 1)]


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (errors.CoordinatorLoadInProgress(), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (errors.CoordinatorNotAvailable(), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (errors.NotCoordinator(), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (errors.FencedLeaderEpoch(), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (errors.FencedStateEpoch(), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (errors.UnknownTopicOrPartition(), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (errors.GroupIdNotFound(), ErrorCode.GROUP_ID_NOT_FOUND),
        (errors.InvalidRequest(), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
    ids=lambda value: value.__class__.__name__ if isinstance(value, Exception) else str(value),
)
def test_errors_of_the_share_coordinator(
    world: World, refusal: errors.KafkaError, expected: int
) -> None:
    world.fill(2)
    world.acquire()
    world.state.failures = [refusal]
    assert code(world.say("one", 0, 1, Cause.ACCEPT)) == expected
    is_over = expected in (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.GROUP_ID_NOT_FOUND,
    )
    assert world.share.life == (FENCED if is_over else ACTIVE)
    world.state.failures = [refusal]
    world.share = world.load()
    assert world.share.life == FAILED
    with pytest.raises(errors.KafkaError) as raised:
        world.acquire()
    assert raised.value.code == expected


def test_moves_on_their_way_survive_a_move_of_the_log_start(world: World) -> None:
    world.fill(6)
    world.acquire()
    world.state.is_slow = True
    pending = world.share.acknowledge("one", [Acknowledgement(0, 5, (Cause.RELEASE,))])
    world.partition.delete_records(2)
    assert world.acquire("two") == []
    assert world.share.window.start_offset == 2
    world.state.go_on()
    world.state.is_slow = False
    assert pending.error() is None
    assert world.acquire("two") == [(2, 5, 2)]


def test_the_exact_number_is_acquired_and_the_rest_of_the_batch_waits(world: World) -> None:
    world.fill(5, 5)
    assert world.acquire(mode=RECORD_LIMIT, record_count_max=7) == [(0, 6, 1)]
    assert world.share.window.end_offset == 9
    assert world.acquire("two", mode=RECORD_LIMIT, record_count_max=2) == [(7, 8, 1)]


def test_release_gives_back_only_the_records_of_the_member(world: World) -> None:
    world.fill(2, 2)
    world.acquire("one", record_count_max=2)
    world.acquire("two", record_count_max=2)
    assert world.share.release("one").done()
    assert world.acquire("three") == [(0, 1, 2)]
    assert world.say("two", 2, 3, Cause.ACCEPT) is None


def test_a_stored_archiving_record_is_buried_after_loading(world: World) -> None:
    world.fill(3)
    world.acquire()
    state = world.state.states[GROUP, world.place]
    state.merge([StateBatch(0, 1, 3, 1)])
    buried = []
    bury = world.context.bury

    def count(group_id: str, partition: object, rows: list[StateBatch]) -> object:
        buried.extend(rows)
        return bury(group_id, world.partition, rows)

    world.context.bury = count  # type: ignore[assignment]
    world.load()
    assert [(row.first_offset, row.last_offset) for row in buried] == [(0, 1)]
    assert world.stored() == [(0, 1, 4, 1)]
    assert world.share.window.start_offset == 2


def test_alternating_types_of_a_large_batch_take_little_time(world: World) -> None:
    world.fill(2000)
    world.acquire()
    causes = [Cause.ACCEPT if offset % 2 else Cause.RELEASE for offset in range(2000)]
    assert world.say("one", 0, 1999, *causes) is None
    assert len(world.acquire("two")) == 1000
