"""Fetch: records, limits, errors, waiting and waking, sessions over the wire."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.storage.validation.origin import AppendOrigin
from tests.apis.conftest import Client, InProcess, Loopback, Tcp
from tests.golden.batches import simple
from tests.golden.requests import Topic, fetch, produce
from wire.error_codes import ErrorCode
from wire.records.batch import RecordBatch
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState

CURRENT = range(4, 19)
NONE = ErrorCode.NONE
LONG_MS = 30_000


def put(client: Client, topic: Topic, *values: bytes, partition: int = 0) -> None:
    """Append one batch."""
    response = client.call(produce(topic, 9, simple(*values), partition=partition), 9)
    assert response.responses[0].partition_responses[0].error_code == NONE


def only(response: FetchResponse) -> PartitionData:
    """Return the one partition of a response."""
    assert response.error_code == NONE, response
    [topic] = response.responses
    [partition] = topic.partitions
    return partition


def read(client: Client, topic: Topic, version: int, offset: int = 0, **how: Any) -> PartitionData:
    """Fetch one partition."""
    return only(client.call(fetch(topic, version, offset, **how), version))


def offsets(partition: PartitionData) -> list[int]:
    """Return the base offsets of the batches in an answer."""
    assert partition.records is not None
    view = memoryview(partition.records)
    found = []
    while view:
        batch = RecordBatch(view)
        found.append(batch.base_offset)
        view = view[batch.size :]
    return found


def trim(client: Client, topic: Topic, offset: int) -> None:
    """DeleteRecords below `offset`."""
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    client.call(
        DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic[0], partitions=[partition])], timeout_ms=1000
        )
    )


@pytest.mark.parametrize("version", CURRENT)
def test_batches_from_an_offset_on(client: Client, version: int) -> None:
    topic = client.make_topic()
    put(client, topic, b"a", b"b")
    put(client, topic, b"c")
    whole = read(client, topic, version)
    assert offsets(whole) == [0, 2]
    assert (whole.error_code, whole.high_watermark, whole.last_stable_offset) == (NONE, 3, 3)
    assert whole.aborted_transactions is None
    assert offsets(read(client, topic, version, 1)) == [0, 2]
    assert offsets(read(client, topic, version, 2)) == [2]
    if version >= 5:
        assert whole.log_start_offset == 0
    if version >= 11:
        assert whole.preferred_read_replica == -1


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_at_the_end_there_is_nothing_and_no_null(client: Client, version: int) -> None:
    topic = client.make_topic()
    put(client, topic, b"a")
    end = read(client, topic, version, 1)
    assert (end.error_code, end.high_watermark) == (NONE, 1)
    assert end.records is not None
    assert len(end.records) == 0


@pytest.mark.parametrize("version", [4, 12, 13, 18])
@pytest.mark.parametrize("offset", [-1, 2, 100])
def test_an_offset_outside_the_log(client: Client, version: int, offset: int) -> None:
    topic = client.make_topic()
    put(client, topic, b"a")
    outside = read(client, topic, version, offset, max_wait_ms=LONG_MS, min_bytes=1)
    assert outside.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (outside.high_watermark, outside.last_stable_offset) == (-1, -1)
    assert outside.log_start_offset == -1
    assert outside.records is not None
    assert len(outside.records) == 0


def test_deleted_offsets_are_out_of_range(client: Client) -> None:
    topic = client.make_topic()
    put(client, topic, b"a", b"b")
    put(client, topic, b"c")
    trim(client, topic, 1)
    assert read(client, topic, 12, 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    inside = read(client, topic, 12, 1)
    assert (offsets(inside), inside.log_start_offset) == ([0, 2], 1)


def test_unknown_topics_partitions_and_ids(client: Client) -> None:
    topic = client.make_topic()
    nowhere = ("nowhere", b"n" * 16)
    assert read(client, nowhere, 12).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert read(client, nowhere, 13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert read(client, ("", bytes(16)), 13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    for version in (12, 13):
        missing = read(client, topic, version, partition=9)
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_first_batch_is_whole_and_later_ones_must_fit(client: Client) -> None:
    topic = client.make_topic(partitions=3)
    for partition in range(3):
        for _ in range(3):
            put(client, topic, b"x" * 1000, partition=partition)
    assert offsets(read(client, topic, 12, partition_max_bytes=1)) == [0]
    assert offsets(read(client, topic, 12, partition_max_bytes=2140)) == [0, 1]
    for limit, expected in [
        (1, [[0], [], []]),
        (2140, [[0, 1], [], []]),
        (3210, [[0, 1, 2], [], []]),
        (4300, [[0, 1, 2], [0], []]),
        (1 << 20, [[0, 1, 2], [0, 1, 2], [0, 1, 2]]),
    ]:
        request = fetch(topic, 12, more=[(topic, 1, 0), (topic, 2, 0)], max_bytes=limit)
        [answered] = client.call(request, 12).responses
        assert [offsets(partition) for partition in answered.partitions] == expected, limit


@pytest.mark.parametrize("how", [{"max_bytes": -1}, {"partition_max_bytes": -1}])
def test_negative_limits(client: Client, how: dict[str, int]) -> None:
    topic = client.make_topic()
    put(client, topic, b"a")
    assert read(client, topic, 12, **how).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_the_brokers_own_limit_holds(client: Client) -> None:
    topic = client.make_topic(partitions=2)
    for partition in (0, 1):
        put(client, topic, b"x" * 1000, partition=partition)
    client.broker.fetch_max_bytes = 1500
    [answered] = client.call(fetch(topic, 12, more=[(topic, 1, 0)]), 12).responses
    assert [offsets(partition) for partition in answered.partitions] == [[0], []]


def test_of_a_partition_named_twice_the_last_counts(client: Client) -> None:
    topic = client.make_topic()
    put(client, topic, b"a")
    put(client, topic, b"b")
    assert offsets(only(client.call(fetch(topic, 12, more=[(topic, 0, 1)]), 12))) == [1]


@pytest.mark.parametrize("version", [9, 12, 13, 18])
def test_leader_epochs(client: Client, version: int) -> None:
    topic = client.make_topic()
    put(client, topic, b"a")
    client.broker.controller.bump_leader_epochs([(topic[0], 0)])
    for epoch, code in [
        (-1, NONE),
        (-2, NONE),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (1, NONE),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ]:
        request = fetch(topic, version, partition_fields={"current_leader_epoch": epoch})
        response = client.call(request, version)
        found = only(response)
        assert found.error_code == code, epoch
        if version >= 16 and code == ErrorCode.FENCED_LEADER_EPOCH:
            assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (1, 1)
            assert [node.node_id for node in response.node_endpoints] == [1]


@pytest.mark.parametrize("version", [12, 18])
def test_a_history_that_parted_from_the_log(client: Client, version: int) -> None:
    topic = client.make_topic()
    put(client, topic, b"a")
    put(client, topic, b"b")
    client.broker.controller.bump_leader_epochs([(topic[0], 0)])
    put(client, topic, b"c")

    def ask(offset: int, epoch: int) -> PartitionData:
        return read(
            client, topic, version, offset, partition_fields={"last_fetched_epoch": epoch},
            max_wait_ms=LONG_MS, min_bytes=1,
        )  # fmt: skip

    assert offsets(ask(2, 0)) == [2]
    assert offsets(ask(1, 0)) == [1, 2]
    parted = ask(3, 0)
    assert (parted.diverging_epoch.epoch, parted.diverging_epoch.end_offset) == (0, 2)
    assert (parted.error_code, offsets(parted)) == (NONE, [])
    assert ask(3, 7).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_other_replicas_are_refused_and_odd_consumers_served(client: Client) -> None:
    topic = client.make_topic()
    put(client, topic, b"a")
    for replica_id, code in [(5, 6), (1, 6), (-1, NONE), (-2, NONE), (-3, NONE)]:
        found = read(client, topic, 12, replica_id=replica_id)
        assert found.error_code == code, replica_id
    state = ReplicaState(replica_id=5, replica_epoch=1)
    assert read(client, topic, 18, replica_state=state).error_code == 6


@pytest.mark.parametrize("level", [2, -1])
def test_an_isolation_level_that_does_not_exist(client: Client, level: int) -> None:
    topic = client.make_topic()
    response = client.call(fetch(topic, 12, isolation_level=level), 12)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    [found] = response.responses[0].partitions
    assert found.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    by_id = client.call(fetch(topic, 13, isolation_level=level), 13)
    assert (by_id.error_code, by_id.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])


def test_read_committed_stops_at_an_open_transaction(client: Client) -> None:
    topic = client.make_topic()
    put(client, topic, b"a")
    partition = client.broker.replica_manager.partition(topic[0], 0)
    open_batch = simple(b"open", attributes=0x10, producer_id=9, producer_epoch=0, base_sequence=0)
    client.broker.replica_manager.append(
        partition, open_batch, acks=1, origin=AppendOrigin.COORDINATOR
    )
    committed = read(client, topic, 12, isolation_level=1)
    assert offsets(committed) == [0]
    assert (committed.high_watermark, committed.last_stable_offset) == (2, 1)
    assert committed.aborted_transactions == []
    assert offsets(read(client, topic, 12)) == [0, 1]


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_read_committed_begins_where_the_records_of_an_open_transaction_were_deleted(
    client: Client, version: int
) -> None:
    topic = client.make_topic()
    partition = client.broker.replica_manager.partition(topic[0], 0)
    for sequence in range(3):
        data = simple(
            b"open", attributes=0x10, producer_id=9, producer_epoch=0, base_sequence=sequence
        )
        client.broker.replica_manager.append(
            partition, data, acks=1, origin=AppendOrigin.COORDINATOR
        )
    trim(client, topic, 2)
    found = read(client, topic, version, offset=2, isolation_level=1)
    assert (found.high_watermark, found.last_stable_offset) == (3, 2)
    assert (found.error_code, offsets(found), found.aborted_transactions) == (0, [], [])
    assert offsets(read(client, topic, version, offset=2)) == [2]


# Waiting


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_fetch_waits_for_data(client: Client, version: int) -> None:
    topic = client.make_topic()
    reader = client.another()
    answer = reader.send(fetch(topic, version, max_wait_ms=LONG_MS, min_bytes=1), version)
    client.wait_until_parked()
    assert not answer.done()
    put(client, topic, b"a")
    found = only(answer.result())
    assert (offsets(found), found.high_watermark) == ([0], 1)
    reader.close()


def test_fetch_waits_for_min_bytes(client: Client) -> None:
    topic = client.make_topic(partitions=2)
    reader = client.another()
    request = fetch(topic, 12, more=[(topic, 1, 0)], max_wait_ms=LONG_MS, min_bytes=2500)
    answer = reader.send(request, 12)
    client.wait_until_parked()
    for partition in (0, 1):
        put(client, topic, b"x" * 1000, partition=partition)
        assert not answer.done()
    put(client, topic, b"x" * 1000)
    [found] = answer.result().responses
    assert [offsets(partition) for partition in found.partitions] == [[0, 1], [0]]
    reader.close()


def test_fetch_times_out_with_the_available_records(client: Client) -> None:
    topic = client.make_topic()
    put(client, topic, b"a")
    clock = client.cluster.runtime.clock
    before = clock.monotonic_ms()
    found = read(client, topic, 12, max_wait_ms=200, min_bytes=100_000)
    assert clock.monotonic_ms() - before >= 200
    assert (found.error_code, offsets(found)) == (NONE, [0])
    empty = read(client, topic, 12, 1, max_wait_ms=50, min_bytes=1)
    assert (empty.error_code, offsets(empty)) == (NONE, [])
    assert client.broker.replica_manager.fetch_purgatory.delayed == 0


@pytest.mark.parametrize("how", [{"max_wait_ms": 0}, {"max_wait_ms": -1}, {"min_bytes": 0}])
def test_fetch_does_not_wait_when_told_so(client: Client, how: dict[str, int]) -> None:
    topic = client.make_topic()
    asked = {"max_wait_ms": LONG_MS, "min_bytes": 1, **how}
    answer = client.send(fetch(topic, 12, **asked), 12)
    if client.simulates_time:
        assert answer.done()
    assert offsets(only(answer.result())) == []


def test_fetch_of_nothing_is_answered_at_once(client: Client) -> None:
    request = FetchRequest(max_wait_ms=LONG_MS, min_bytes=1, topics=[])
    assert client.call(request, 12).responses == []
    nowhere = fetch(("nowhere", b"n" * 16), 12, max_wait_ms=LONG_MS, min_bytes=1)
    answer = client.send(nowhere, 12)
    if client.simulates_time:
        assert answer.done()
    assert only(answer.result()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_unknown_partition_does_not_end_the_wait(client: Client) -> None:
    topic = client.make_topic()
    reader = client.another()
    request = fetch(topic, 12, more=[(("nowhere", b""), 0, 0)], max_wait_ms=LONG_MS, min_bytes=1)
    answer = reader.send(request, 12)
    client.wait_until_parked()
    assert not answer.done()
    put(client, topic, b"a")
    known, unknown = answer.result().responses
    assert offsets(known.partitions[0]) == [0]
    assert unknown.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    reader.close()


@pytest.mark.parametrize("version", [12, 13])
def test_deleting_the_topic_ends_the_wait(client: Client, version: int) -> None:
    topic = client.make_topic()
    reader = client.another()
    answer = reader.send(fetch(topic, version, max_wait_ms=LONG_MS, min_bytes=1), version)
    client.wait_until_parked()
    client.broker.controller.delete_topic(topic[1])
    assert only(answer.result()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    reader.close()


def test_a_new_leader_epoch_ends_the_wait_of_a_fenced_reader(client: Client) -> None:
    topic = client.make_topic()
    fields = {"current_leader_epoch": 0}
    reader = client.another()
    answer = reader.send(
        fetch(topic, 12, max_wait_ms=LONG_MS, min_bytes=1, partition_fields=fields), 12
    )
    client.wait_until_parked()
    client.broker.controller.bump_leader_epochs([(topic[0], 0)])
    assert only(answer.result()).error_code == ErrorCode.FENCED_LEADER_EPOCH
    reader.close()


def test_a_deleted_and_remade_topic_has_another_id(client: Client) -> None:
    name, old_id = client.make_topic()
    client.broker.controller.delete_topic(old_id)
    made = client.cluster.create_topic(name, 1)
    assert read(client, (name, old_id), 13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert read(client, (name, made.topic_id), 13).error_code == NONE


def test_a_reader_that_hangs_up_is_forgotten(client: Client) -> None:
    topic = client.make_topic()
    reader = client.another()
    reader.send(fetch(topic, 12, max_wait_ms=LONG_MS, min_bytes=1), 12)
    client.wait_until_parked()
    if type(reader).__name__ == "InProcess":
        return  # an in-process caller has no connection that could end
    purgatory = client.broker.replica_manager.fetch_purgatory
    reader.close()
    while purgatory.delayed:
        assert not isinstance(client, Loopback)
    put(client, topic, b"a")
    assert purgatory.watched == 0


def test_closing_the_cluster_answers_waiting_fetches(client: Client) -> None:
    if not client.simulates_time:
        return  # the listener closes first, with its connections
    topic = client.make_topic()
    answer = client.send(fetch(topic, 12, max_wait_ms=LONG_MS, min_bytes=1), 12)
    client.cluster.close()
    assert answer.done()
    assert only(answer.result()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# Sessions


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_a_session_sends_only_news(client: Client, version: int) -> None:
    topic = client.make_topic(partitions=2)
    put(client, topic, b"a")
    begun = client.call(fetch(topic, version, 1, session_epoch=0, more=[(topic, 1, 0)]), version)
    assert begun.session_id > 0
    assert sum(len(t.partitions) for t in begun.responses) == 2
    quiet = client.call(fetch(None, version, session_id=begun.session_id, session_epoch=1), version)
    assert (quiet.session_id, quiet.responses) == (begun.session_id, [])
    put(client, topic, b"b", partition=1)
    news = only(
        client.call(fetch(None, version, session_id=begun.session_id, session_epoch=2), version)
    )
    assert (news.partition_index, offsets(news)) == (1, [0])


def test_a_session_waits_for_news(client: Client) -> None:
    topic = client.make_topic()
    begun = client.call(fetch(topic, 12, session_epoch=0), 12)
    reader = client.another()
    answer = reader.send(
        fetch(None, 12, session_id=begun.session_id, session_epoch=1,
              max_wait_ms=LONG_MS, min_bytes=1), 12,
    )  # fmt: skip
    client.wait_until_parked()
    put(client, topic, b"a")
    assert offsets(only(answer.result())) == [0]
    reader.close()


@pytest.mark.parametrize(
    "id, epoch, code",
    [
        (99, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, 5, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ],
)
def test_session_errors_are_at_the_top(client: Client, id: int, epoch: int, code: int) -> None:
    topic = client.make_topic()
    response = client.call(fetch(topic, 12, session_id=id, session_epoch=epoch), 12)
    assert (response.error_code, response.session_id, response.responses) == (code, 0, [])


def test_a_repeated_request_of_a_session(client: Client) -> None:
    topic = client.make_topic()
    begun = client.call(fetch(topic, 12, session_epoch=0), 12)
    again = fetch(None, 12, session_id=begun.session_id, session_epoch=1)
    assert client.call(again, 12).error_code == NONE
    assert client.call(again, 12).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_full_answer_ends_soon_and_the_next_goes_on_where_it_ended(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embedlog.broker.apis.fetch.TARGET_SIZE", 1500)
    topic = client.make_topic(partitions=5)
    for partition in range(5):
        for _ in range(3):
            put(client, topic, b"x" * 1000, partition=partition)
    everything = [[0, 1, 2]] * 5

    def found(partition_max_bytes: int, **limits: Any) -> list[list[int]]:
        more = [(topic, partition, 0) for partition in range(1, 5)]
        request = fetch(topic, 12, more=more, partition_max_bytes=partition_max_bytes, **limits)
        for asked in request.topics[0].partitions:
            asked.partition_max_bytes = partition_max_bytes
        [answered] = client.call(request, 12).responses
        assert [each.partition_index for each in answered.partitions] == [0, 1, 2, 3, 4]
        assert [each.high_watermark for each in answered.partitions] == [3] * 5
        return [offsets(each) for each in answered.partitions]

    if type(client) is InProcess:
        # Nothing travels, so no answer is cut short.
        assert found(1100) == [[0]] * 5
        assert found(1 << 20) == everything
        return
    if type(client) is Loopback:
        # Each uses a connection of its own, so the broker does not remember where the last one
        # ended.
        assert found(1100) == [[0], [0], [], [], []]
        assert found(1100) == [[0], [0], [], [], []]
        return
    assert type(client) is Tcp
    assert found(1100) == [[0], [0], [], [], []]
    assert found(1100) == [[], [], [0], [0], []]
    assert found(1100) == [[0], [], [], [], [0]]
    assert found(1100) == [[], [0], [0], [], []]
    # A partition is read up to its own limit.
    assert found(1 << 20) == [[], [], [], [0, 1, 2], []]
    # `min_bytes` above the target raises it.
    assert found(1 << 20, min_bytes=1 << 20, max_wait_ms=1) == everything
