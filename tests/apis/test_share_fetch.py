"""ShareFetch and ShareAcknowledge through every transport; the golden tests compare with Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.apis.conftest import Client
from tests.golden.sharing_requests import acknowledge_request, fetch_request
from tests.sharing.memory_broker import give_state
from tests.sharing.memory_state import MemoryState
from wire.error_codes import ErrorCode
from wire.records.batch import RecordBatch
from wire.records.encode.builder import build_batch
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.schemas.update_features import FeatureUpdateKey, UpdateFeaturesRequest

GROUP = "workers"
LONG_MS = 20_000
ON_CONNECTIONS = pytest.mark.parametrize("client", ["loopback", "tcp"], indirect=True)
"""A client in this process has no connection that could break."""
IN_SIMULATED_TIME = pytest.mark.parametrize("client", ["in-process", "loopback"], indirect=True)
"""Over TCP nobody knows whether a request waits already."""
ON_SIMULATED_CONNECTIONS = pytest.mark.parametrize("client", ["loopback"], indirect=True)


class Share:
    """A topic with its stored state, and members."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.state: MemoryState = give_state(client.broker)
        self.topic = client.make_topic()
        self.place = (self.topic, 0)
        self.state.initialize(GROUP, (self.topic[1], 0))

    def fill(self, *values: bytes) -> None:
        """Produce one batch."""
        batch = build_batch(values, timestamps=1_700_000_000_000)
        rows = [PartitionProduceData(index=0, records=batch)]
        topic = TopicProduceData(name=self.topic[0], partition_data=rows)
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
        answer = self.client.another().call(request, 9)
        assert not answer.responses[0].partition_responses[0].error_code

    def fetch(self, epoch: int, member: str = "one", **fields: Any) -> Any:
        """ShareFetch of the topic; return its pending answer."""
        fields = {"max_wait_ms": 0, **fields}
        places = [] if epoch else [self.place]
        return self.client.send(fetch_request(GROUP, member, epoch, *places, **fields))

    def acquired(self, answer: Any) -> list[tuple[int, int, int]]:
        """Return the ranges of the one partition; none if the answer leaves it out."""
        response = answer.result()
        assert response.error_code == 0
        return [
            (row.first_offset, row.last_offset, row.delivery_count)
            for topic in response.responses
            for partition in topic.partitions
            for row in partition.acquired_records
        ]

    def acknowledge(
        self, epoch: int, first: int, last: int, types: Sequence[int], member: str = "one"
    ) -> int:
        """ShareAcknowledge of one batch; return the code of the partition."""
        request = acknowledge_request(GROUP, member, epoch, {self.place: [(first, last, types)]})
        response = self.client.call(request)
        assert response.error_code == 0
        return int(response.responses[0].partitions[0].error_code)


@pytest.fixture
def share(client: Client) -> Share:
    """A share group on the broker of the client."""
    return Share(client)


def test_records_are_acquired_as_they_lie_in_the_log_and_acknowledged(share: Share) -> None:
    share.fill(b"a", b"b", b"c")
    response = share.fetch(0).result()
    (partition,) = response.responses[0].partitions
    batch = RecordBatch(partition.records)
    assert [record.value for record in batch.records()] == [b"a", b"b", b"c"]
    assert share.acknowledge(1, 0, 2, [1, 2, 3]) == 0
    assert share.acquired(share.fetch(2)) == [(1, 1, 2)]
    assert share.acknowledge(3, 1, 1, [1]) == 0
    assert share.acquired(share.fetch(4)) == []


def test_a_waiting_fetch_gets_new_records(share: Share) -> None:
    assert share.acquired(share.fetch(0)) == []
    answer = share.fetch(1, max_wait_ms=LONG_MS, min_bytes=1)
    share.fill(b"a")
    assert share.acquired(answer) == [(0, 0, 1)]


def test_a_waiting_fetch_gets_released_records_at_once(client: Client, share: Share) -> None:
    share.fill(b"a", b"b")
    assert share.acquired(share.fetch(0)) == [(0, 1, 1)]
    other = Share.__new__(Share)
    other.__dict__.update(share.__dict__, client=client.another())
    answer = other.fetch(0, "two", max_wait_ms=LONG_MS, min_bytes=1)
    if client.simulates_time:
        assert not answer.done()
    assert share.acknowledge(1, 1, 1, [2]) == 0
    assert other.acquired(answer) == [(1, 1, 2)]


@ON_CONNECTIONS
def test_a_session_ends_with_its_connection(client: Client, share: Share) -> None:
    share.fill(b"a")
    gone = Share.__new__(Share)
    gone.__dict__.update(share.__dict__, client=client.another())
    assert gone.acquired(gone.fetch(0, "gone")) == [(0, 0, 1)]
    answer = share.fetch(0, max_wait_ms=LONG_MS, min_bytes=1)
    gone.client.close()
    assert share.acquired(answer) == [(0, 0, 2)]


def test_a_session_in_this_process_ends_with_its_close(client: Client, share: Share) -> None:
    share.fill(b"a")
    assert share.acquired(share.fetch(0, "gone")) == [(0, 0, 1)]
    answer = client.another().send(
        fetch_request(GROUP, "one", 0, share.place, max_wait_ms=LONG_MS, min_bytes=1)
    )
    closed = client.call(acknowledge_request(GROUP, "gone", -1, {}))
    assert closed.error_code == 0
    assert share.acquired(answer) == [(0, 0, 2)]


@ON_SIMULATED_CONNECTIONS
def test_the_member_of_a_broken_connection_acquires_nothing(client: Client, share: Share) -> None:
    gone = Share.__new__(Share)
    gone.__dict__.update(share.__dict__, client=client.another())
    share.fill(b"a")
    gone.fetch(0, "gone", max_wait_ms=LONG_MS, min_bytes=5000)
    gone.client.close()
    assert share.acquired(share.fetch(0)) == [(0, 0, 1)]


def _level(client: Client, level: int) -> None:
    update = FeatureUpdateKey(
        feature="share.version", max_version_level=level, upgrade_type=1 if level else 2
    )
    answer = client.call(UpdateFeaturesRequest(feature_updates=[update]), 1)
    assert not answer.error_code, answer


def test_new_offsets_count_once_all_members_have_closed_session_and_connection(
    client: Client, share: Share
) -> None:
    """As librdkafka closes: the last acknowledgement ends the session, then the connection ends."""
    share.fill(b"a")
    member = Share.__new__(Share)
    member.__dict__.update(share.__dict__, client=client.another())
    assert member.acquired(member.fetch(0)) == [(0, 0, 1)]
    assert member.acknowledge(-1, 0, 0, [1]) == 0
    member.client.close()
    share.state.initialize(GROUP, (share.topic[1], 0))
    seen: list[tuple[int, int, int]] = []
    for number in range(100):  # over TCP the broker notices the end a moment later
        seen = share.acquired(share.fetch(0, f"other-{number}", max_wait_ms=100))
        client.call(acknowledge_request(GROUP, f"other-{number}", -1, {}))
        if seen or client.simulates_time:
            break
    assert seen == [(0, 0, 1)]


@IN_SIMULATED_TIME
def test_without_the_feature_all_sessions_and_locks_are_forgotten(
    client: Client, share: Share
) -> None:
    share.fill(b"a")
    assert share.acquired(share.fetch(0)) == [(0, 0, 1)]
    _level(client, 0)
    for request in (
        fetch_request(GROUP, "one", 1),
        acknowledge_request(GROUP, "one", 1, {}),
    ):
        assert client.call(request).error_code == ErrorCode.UNSUPPORTED_VERSION
    client.cluster.runtime.scheduler.run_for(10)
    _level(client, 1)
    answer = share.fetch(1).result()
    assert answer.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert share.acquired(share.fetch(0, "two")) == [(0, 0, 1)]


@IN_SIMULATED_TIME
def test_of_two_waiting_fetches_the_second_goes_on_waiting(client: Client, share: Share) -> None:
    first = share.fetch(0, "one", max_wait_ms=LONG_MS, min_bytes=1)
    other = Share.__new__(Share)
    other.__dict__.update(share.__dict__, client=client.another())
    second = other.fetch(0, "two", max_wait_ms=LONG_MS, min_bytes=1)
    share.fill(b"a")
    assert first.done()
    assert not second.done()
    share.fill(b"b", b"c")
    assert share.acquired(first) == [(0, 0, 1)]
    assert other.acquired(second) == [(1, 2, 1)]


def test_the_limits_hold_over_all_partitions_of_a_fetch(client: Client, share: Share) -> None:
    name, topic_id = client.make_topic(3)
    places = [((name, topic_id), number) for number in range(3)]
    for number in range(3):
        share.state.initialize(GROUP, (topic_id, number))
        batch = build_batch([b"v" * 100] * 2, timestamps=1_700_000_000_000)
        rows = [PartitionProduceData(index=number, records=batch)]
        topic = TopicProduceData(name=name, partition_data=rows)
        client.call(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), 9)

    def counts(member: str, **limits: Any) -> list[int]:
        """Open and close a session; return the number of records of each partition."""
        request = fetch_request(GROUP, member, 0, *places, max_wait_ms=0, **limits)
        response = client.call(request)
        client.call(acknowledge_request(GROUP, member, -1, {}))
        found = [p for t in response.responses for p in t.partitions]
        found.sort(key=lambda partition: partition.partition_index)
        return [
            sum(r.last_offset - r.first_offset + 1 for r in partition.acquired_records)
            for partition in found
        ]

    assert counts("one", max_records=3) == [2, 2, 0]
    assert counts("two", max_records=3, share_acquire_mode=1) == [2, 1, 0]
    assert counts("three", max_bytes=10) == [2, 0, 0]  # one batch, although it is larger
    assert counts("four") == [1, 2, 2]  # the first came back three times: half of it at a time


@IN_SIMULATED_TIME
def test_a_waiting_fetch_ends_with_its_share_partition(client: Client, share: Share) -> None:
    share.fetch(0).result()
    answer = share.fetch(1, max_wait_ms=LONG_MS, min_bytes=1)
    assert not answer.done()
    loaded = client.broker.sharing.find(GROUP, (share.topic[1], 0))
    assert loaded is not None
    loaded.fence()
    assert answer.done()
    assert share.acquired(answer) == []
    share.fill(b"a")
    assert share.acquired(share.fetch(2)) == [(0, 0, 1)]
