"""The segment that Apache Kafka 4.4.0 wrote is loaded here, and records are written as it does."""

from __future__ import annotations

import functools
import json
from typing import Any

from embedlog.coordinator.loading import replay_log
from embedlog.coordinator.records import SHARE_RECORD_TYPES, RecordFormat
from embedlog.coordinator.share.keys import ShareKey
from embedlog.coordinator.share.share_shard import ShareShard
from embedlog.coordinator.share.stored_state import StoredState
from embedlog.storage.validation.origin import AppendOrigin
from tests.coordinator.share.story import RECORDED
from tests.coordinator.share.world import World
from tests.storage.logs import new_log
from wire.records import iter_batches
from wire.records.encode.builder import build_batch

FORMAT = RecordFormat(SHARE_RECORD_TYPES, is_cumulative=True)


@functools.cache
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


def records() -> list[tuple[bytes, bytes | None, int]]:
    """Return (key, value, timestamp) of the recorded segment."""
    data = memoryview(bytes.fromhex(recorded()["segment"]))
    return [
        (bytes(record.key or b""), None if record.value is None else bytes(record.value),
         record.timestamp)
        for batch in iter_batches(data)
        for record in batch.records()
    ]  # fmt: skip


def loaded(
    pairs: list[tuple[bytes, bytes | None, int]], *, batch_size: int = 1
) -> dict[ShareKey, StoredState]:
    """Return the states of a log with these records, `batch_size` of them in each batch."""
    log = new_log()
    for first in range(0, len(pairs), batch_size):
        some = pairs[first : first + batch_size]
        now_ms = some[-1][2]
        batch = build_batch(
            [value for _, value, _ in some], keys=[key for key, _, _ in some], timestamps=now_ms
        )
        log.append_as_leader(batch, leader_epoch=0, now_ms=now_ms, origin=AppendOrigin.COORDINATOR)
    with World() as world:
        world.initialize()
        (context,) = [shard.context for shard in world.shards()]
        shard = ShareShard(
            context, delete_records=lambda _index, _offset: None, state_count=lambda: 0
        )
        assert replay_log(log, FORMAT, shard) == len(pairs)
    return shard.states


def test_the_states_are_those_that_kafka_answered() -> None:
    topic_id = bytes.fromhex(recorded()["topic_id"])
    states = loaded(records())
    expected = recorded()["states"]
    assert {group for group, _, _ in states} == {g for g, row in expected.items() if g != "gone"}
    for (group, found_id, partition), state in states.items():
        row = expected[group]
        assert (found_id, partition) == (topic_id, 0)
        assert state.state_epoch == row["state_epoch"]
        assert state.leader_epoch == row["leader_epoch"]
        assert state.start_offset == row["start_offset"]
        assert state.delivery_complete_count == row["delivery_complete_count"]
        if not row["error_code"]:
            assert [list(batch) for batch in state.batches] == row["batches"]
    assert expected["busy"]["batches"]
    assert states["anew", topic_id, 0].snapshot_epoch == 1
    assert states["busy", topic_id, 0].snapshot_epoch > 1


def test_records_are_encoded_as_kafka_encodes_them() -> None:
    kinds = set()
    for key, value, _ in records():
        record = FORMAT.decode(key, value)
        assert record is not None
        assert FORMAT.encode(record) == (key, value)
        kinds.add((type(record.key).__name__, value is None))
    assert kinds == {
        ("ShareSnapshotKey", False), ("ShareSnapshotKey", True), ("ShareUpdateKey", False),
    }  # fmt: skip


def test_records_of_one_batch_add_up_as_well() -> None:
    pairs = records()
    expected = {key: state.batches for key, state in loaded(pairs).items()}
    for batch_size in (2, 3, len(pairs)):
        found = loaded(pairs, batch_size=batch_size)
        assert {key: state.batches for key, state in found.items()} == expected


def test_any_number_of_first_records_can_be_loaded() -> None:
    pairs = records()
    for count in range(1, len(pairs), 3):
        assert loaded(pairs[:count])
