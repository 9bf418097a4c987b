"""The states of share partitions: their records, restarts, snapshots, pruning, limits."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import errors
from embedlog.coordinator.share.merging import merged
from embedlog.testing import SimRuntime, sim_runtime
from embedlog.topic_names import SHARE_STATE_TOPIC
from tests.coordinator.share.world import TOPIC, World
from tests.golden import share_state_requests as requests
from wire.error_codes import ErrorCode
from wire.schemas.share_state import ShareSnapshotValue, ShareUpdateValue

COLD = "share.coordinator.cold.partition.snapshot.interval.ms"
PRUNING = "share.coordinator.state.topic.prune.interval.ms"
UPDATES = "share.coordinator.snapshot.update.records.per.snapshot"
HOUR_MS = 3_600_000
MANY = 200
LAST = 2**63 - 1


def test_by_default_500_updates_follow_a_snapshot() -> None:
    with World() as world:
        world.initialize()
        for offset in range(502):
            assert world.write((offset, offset, 2, 1)) == 0
        values = [value for _, _, value in world.records()]
        kinds = [type(value) for value in values]
        assert kinds == [
            ShareSnapshotValue, *[ShareUpdateValue] * 500, ShareSnapshotValue, ShareUpdateValue,
        ]  # fmt: skip
        assert (values[501].snapshot_epoch, values[502].snapshot_epoch) == (1, 1)
        assert len(values[501].state_batches) == 1
        assert values[501].state_batches[0].last_offset == 500


def test_without_updates_each_write_is_a_snapshot() -> None:
    with World(config={UPDATES: 0}) as world:
        world.initialize()
        world.write((0, 4, 2, 1))
        world.write((5, 9, 2, 1))
        assert [value.snapshot_epoch for _, _, value in world.records()] == [0, 1, 2]
        assert world.batches() == [(0, 9, 2, 1)]


def test_a_single_broker_needs_no_second_replica() -> None:
    with World() as world:
        assert world.core.config.share_coordinator_state_topic_min_isr == 2
        assert world.initialize() == 0


@pytest.mark.parametrize("updates", [0, 2, 500])
@pytest.mark.parametrize("is_clean", [True, False])
def test_after_a_restart_the_states_are_the_same(updates: int, is_clean: bool) -> None:
    runtime = sim_runtime(seed=2)
    with World("data", runtime, config={UPDATES: updates}, durability="os") as world:
        for group in ("g", "other"):
            world.initialize(group, state_epoch=3, start=5)
            world.read(group, leader_epoch=7)
        for first in range(5, 40, 3):
            world.write(
                (first, first + 5, first % 3, first % 2), state_epoch=3, leader_epoch=7,
                start=first - 3, complete=first,
            )  # fmt: skip
        world.initialize("gone")
        world.delete("gone")
        expected = _everything(world)
        files = runtime.files if is_clean else runtime.files.survivor()
        again: SimRuntime = sim_runtime(files=files)
        if not is_clean:
            with World("data", again, durability="os") as second:
                assert _everything(second) == expected
    if is_clean:
        with World("data", again, durability="os") as second:
            assert _everything(second) == expected


def test_an_epoch_fences_leaders_after_a_restart() -> None:
    runtime = sim_runtime(seed=2)
    with World("data", runtime, durability="os") as world:
        world.initialize()
        world.read(leader_epoch=4)
        world.initialize(state_epoch=2)
    with World("data", sim_runtime(files=runtime.files), durability="os") as world:
        assert world.summary().leader_epoch == 0
        assert world.read(leader_epoch=3).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert world.read(leader_epoch=4).error_code == 0


def test_an_answer_waits_for_the_disk_and_the_next_read_for_the_write() -> None:
    with World("data", durability="fsync") as world:
        world.initialize()
        written = world.core.share_coordinator.write(
            ("g", world.topic_id, 0), lambda shard: _forget(world, shard)
        )
        assert not written.done()
        world.wait(written)
        assert world.summary().start_offset == -1


def _forget(world: World, shard: Any) -> Any:
    return shard.forget_topics([world.topic_id])


# Space


def test_records_before_the_oldest_latest_snapshot_are_deleted() -> None:
    with World(config={UPDATES: 3, COLD: HOUR_MS * 100}) as world:
        world.initialize("busy")
        world.initialize("idle")
        for offset in range(MANY):
            world.write((offset, offset, 2, 1), group="busy", start=offset)
        world.let_pass(HOUR_MS)
        assert [offset for offset, _, _ in world.records()][0] == 1, "the idle one keeps all"
        world.delete("idle")
        world.let_pass(HOUR_MS)
        left = world.records()
        assert isinstance(left[0][2], ShareSnapshotValue)
        assert len(left) <= 5
        assert world.batches("busy") == [(MANY - 1, MANY - 1, 2, 1)]


def test_an_idle_state_gets_a_cold_snapshot_and_keeps_nothing() -> None:
    with World(config={UPDATES: 3, COLD: 10_000, PRUNING: 10_000}) as world:
        world.initialize("idle", start=3)
        world.write((4, 5, 0, 1), group="idle")
        world.initialize("busy")
        for offset in range(MANY):
            world.write((offset, offset, 2, 1), group="busy", start=offset)
        began_ms = world.runtime.clock.wall_ms()
        world.let_pass(20_000)
        assert [key.group_id for _, key, _ in world.records()] == ["idle", "busy"]
        for _, _, value in world.records():
            assert (value.create_timestamp, value.write_timestamp) == (began_ms, began_ms + 10_000)
        end = world.log.log.log_end_offset
        world.let_pass(HOUR_MS)
        assert world.log.log.log_end_offset == end, "all are cold"
        assert world.batches("idle") == [(4, 5, 0, 1)]
        assert world.summary("idle").start_offset == 3


def test_a_warm_state_makes_the_others_cold_again() -> None:
    with World(config={COLD: 10_000, PRUNING: HOUR_MS}) as world:
        world.initialize("a")
        world.let_pass(12_000)
        world.initialize("b")
        world.let_pass(10_000)
        epochs = [(key.group_id, value.snapshot_epoch) for _, key, value in world.records()]
        assert epochs == [("a", 0), ("a", 1), ("b", 0), ("a", 2)]


def test_without_states_no_record_is_left() -> None:
    with World(config={PRUNING: 10_000}) as world:
        world.initialize()
        world.write((0, 4, 2, 1))
        world.delete()
        world.let_pass(10_000)
        assert world.records() == []
        assert world.initialize() == 0
        world.let_pass(10_000)
        assert len(world.records()) == 1


def test_a_log_without_states_is_loaded_and_pruned_again() -> None:
    runtime = sim_runtime(seed=2)
    with World("data", runtime, config={PRUNING: 10_000}, durability="os") as world:
        world.initialize()
        world.delete()
        world.let_pass(10_000)
    again = sim_runtime(files=runtime.files)
    with World("data", again, config={PRUNING: 10_000}, durability="os") as world:
        assert world.summary().start_offset == -1
        world.let_pass(30_000)
        assert world.initialize() == 0
        assert world.batches() == []


def test_a_pruned_log_is_loaded_although_updates_lack_their_snapshot() -> None:
    runtime = sim_runtime(seed=2)
    config = {UPDATES: 3, PRUNING: 10_000}
    with World("data", runtime, config=config, durability="os") as world:
        world.initialize("a")
        world.write((0, 4, 2, 1), group="a")
        world.initialize("b", start=7)
        for offset in range(3):
            world.write((offset, offset, 4, 2), group="a")
        world.let_pass(10_000)
        assert [key.group_id for _, key, _ in world.records()][0] == "b"
        expected = world.batches("a")
        assert type(world.records()[1][2]) is ShareUpdateValue
    with World("data", sim_runtime(files=runtime.files), durability="os") as world:
        assert world.batches("a") == expected == [(0, 2, 4, 2), (3, 4, 2, 1)]
        assert world.summary("b").start_offset == 7


def test_a_refused_deletion_is_tried_again() -> None:
    with World(config={PRUNING: 10_000, UPDATES: 0}) as world:
        world.initialize()
        world.write((0, 1, 2, 1))
        world.set_cleanup_policy("compact")
        world.let_pass(10_000)
        assert len(world.records()) == 2
        world.set_cleanup_policy("delete")
        world.let_pass(10_000)
        assert len(world.records()) == 1


# Topics


def test_the_states_of_a_deleted_topic_are_deleted_and_others_stay() -> None:
    with World() as world:
        topic_id = world.topic_id
        world.cluster.create_topic("other", 1)
        other = world.core.image.topics_by_name["other"].topic_id
        for group in ("a", "b"):
            world.initialize(group)
            world.ask(requests.initialize(group, other))
        world.delete_topic(TOPIC)
        world.let_pass(1)
        states = world.core.share_coordinator.runtime.loaded()[0].states
        assert list(states) == [("a", other, 0), ("b", other, 0)]
        assert [key.topic_id for _, key, value in world.records() if value is None] == [
            topic_id
        ] * 2
        world.cluster.create_topic(TOPIC, 1)
        assert world.summary("a").start_offset == -1


def test_a_request_between_the_deletion_and_its_effect_finds_no_topic() -> None:
    with World() as world:
        topic_id = world.topic_id
        world.initialize()
        world.delete_topic(TOPIC)
        row = world.ask(requests.read("g", topic_id))
        assert row.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST)
        row = world.ask(requests.write("g", topic_id))
        assert row.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST)


def test_without_its_topic_there_is_no_coordinator() -> None:
    with World() as world:
        world.initialize()
        world.delete_topic(SHARE_STATE_TOPIC)
        world.let_pass(1)
        assert world.initialize() == ErrorCode.NOT_COORDINATOR
        assert world.core.share_coordinator.runtime.loaded() == []


def test_a_deleted_topic_costs_nothing_without_share_groups() -> None:
    with World() as world:
        world.delete_topic(SHARE_STATE_TOPIC)
        world.let_pass(1)
        world.delete_topic(TOPIC)
        world.let_pass(1)
        assert world.core.share_coordinator.runtime.loaded() == []


# Limits


def test_there_is_a_limit_of_states_and_existing_ones_stay() -> None:
    with World(config={"embedlog.max.share.partitions": 2}) as world:
        assert world.initialize("a") == 0
        assert world.initialize("b") == 0
        row = world.ask(requests.initialize("c", world.topic_id))
        assert row.error_code == ErrorCode.POLICY_VIOLATION
        assert "embedlog.max.share.partitions" in row.error_message
        assert world.initialize("a", state_epoch=2) == 0
        world.delete("b")
        assert world.initialize("c") == 0


@pytest.mark.parametrize(
    "batch", [(9, 8, 0, 1), (2**63 - 1, 2**63 - 1, 0, 1), (0, 2**63 - 1, 0, 1)]
)
def test_a_batch_that_would_spoil_the_state_is_refused(batch: requests.Batch) -> None:
    with World() as world:
        world.initialize()
        assert world.write(batch) == ErrorCode.INVALID_REQUEST
        assert world.write((0, 4, 2, 1)) == 0
        assert world.batches() == [(0, 4, 2, 1)]


def test_the_number_of_batches_is_limited_so_that_a_snapshot_fits_into_the_log() -> None:
    with World(config={UPDATES: 1}) as world:
        world.initialize()
        most = [(2 * n, 2 * n, 2, 1) for n in range(19_999)]
        assert world.write(*most[:10_000]) == 0
        assert world.write(*most[10_000:]) == 0
        assert world.write((50_000, 50_000, 0, 1), (60_000, 60_000, 0, 1)) == 42
        assert world.write((50_000, 50_000, 0, 1)) == 0
        assert world.write((50_002, 50_002, 0, 1)) == ErrorCode.INVALID_REQUEST
        assert world.write(start=30_000) == 0
        assert world.write((50_002, 50_002, 0, 1)) == 0


def test_codec_of_the_records_is_a_setting() -> None:
    with World(config={"share.coordinator.state.topic.compression.codec": 1}) as world:
        world.initialize()
        world.write(*[(10 * n, 10 * n + 1, 2, 1) for n in range(100)])
        log = world.log.log
        data = log.reader.read(0, max_bytes=1 << 20, end_offset=log.log_end_offset).records
        assert len(data) < 1000
        assert len(world.batches()) == 100


def test_loading_keeps_all_updates_of_a_key() -> None:
    runtime = sim_runtime(seed=2)
    with World("data", runtime, durability="os") as world:
        world.initialize()
        writes = [(n, n + 1, n % 5, n % 3) for n in range(50)]
        for batch in writes:
            world.write(batch)
    expected: list[requests.Batch] = []
    for batch in writes:
        expected = merged(expected, [batch])
    with World("data", sim_runtime(files=runtime.files), durability="os") as world:
        assert world.batches() == expected


def test_a_closed_coordinator_answers() -> None:
    world = World()
    coordinator, topic_id = world.core.share_coordinator, world.topic_id
    world.initialize()
    world.cluster.close()
    pending = coordinator.write(("g", topic_id, 0), lambda shard: shard.prune())
    assert isinstance(pending.error(), errors.CoordinatorNotAvailable)


def _everything(world: World) -> dict[str, Any]:
    """Return the states that requests can see, by group."""
    found: dict[str, Any] = {}
    for group in ("g", "other", "gone"):
        row = world.summary(group)
        numbers = row.state_epoch, row.leader_epoch, row.start_offset, row.delivery_complete_count
        read = world.read(group, leader_epoch=7)
        found[group] = numbers, read.error_code, read.start_offset, repr(read.state_batches)
    return found
