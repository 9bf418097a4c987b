"""A share partition and a change of its leader, with two brokers and one share coordinator."""

from __future__ import annotations

from typing import Any

from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from tests.golden.sharing_requests import acknowledge_request, fetch_request
from tests.sharing.memory_broker import give_state
from wire.error_codes import ErrorCode
from wire.records.encode.builder import build_batch
from wire.registry import stable_versions
from wire.schema import declaration

GROUP = "workers"


class Two:
    """Two brokers under simulated time. Close them after use."""

    def __init__(self) -> None:
        self.runtime = sim_runtime(seed=1)
        self.cluster = Cluster(brokers=2, runtime=self.runtime)
        made = self.cluster.create_topic("t", replication_factor=2)
        self.topic = ("t", made.topic_id)
        self.place = (self.topic, 0)
        self.state = give_state(self.core(1))
        give_state(self.core(2), self.state)
        self.state.initialize(GROUP, (made.topic_id, 0))
        self.partition = self.cluster.partition("t", 0)

    def core(self, node_id: int) -> Any:
        """Return a broker."""
        return self.cluster.broker(node_id).core

    def fill(self, count: int) -> None:
        """Append a batch, and let it be committed."""
        leader = self.core(self.partition.leader)
        partition = leader.replica_manager.partition("t", 0)
        batch = build_batch([b"v"] * count, timestamps=1_700_000_000_000)
        leader.replica_manager.append(partition, batch, acks=-1)
        self.run_for(2000)
        assert partition.log.offsets.high_watermark == partition.log.log_end_offset

    def begin(self, node_id: int, request: Any) -> Any:
        """Ask a broker; return the response or a pending of it."""
        key = declaration(type(request)).api
        assert key is not None
        context = RequestContext(key, stable_versions(key)[1], client_id="test")
        return self.core(node_id).handle(context, request)

    def ask(self, node_id: int, request: Any) -> Any:
        """Ask a broker and wait for the response."""
        answer = self.begin(node_id, request)
        if isinstance(answer, Pending):
            assert self.runtime.scheduler.wait(answer, 60_000)
            return answer.result()
        return answer

    def run_for(self, delay_ms: int) -> None:
        """Let time pass."""
        self.runtime.scheduler.run_for(delay_ms)


def acquired(response: Any) -> list[tuple[int, int, int]]:
    """Return the acquired ranges of the one partition."""
    (partition,) = response.responses[0].partitions
    assert not partition.error_code, partition
    return [(r.first_offset, r.last_offset, r.delivery_count) for r in partition.acquired_records]


def test_the_new_leader_loads_the_stored_state_and_the_old_one_names_it() -> None:
    two = Two()
    with two.cluster:
        two.fill(8)
        old = two.partition.leader
        new = 3 - old
        open_ = fetch_request(GROUP, "one", 0, two.place)
        assert acquired(two.ask(old, open_)) == [(0, 7, 1)]
        told = {two.place: [(0, 1, [1]), (2, 2, [2])]}
        answer = two.ask(old, acknowledge_request(GROUP, "one", 1, told))
        assert not answer.responses[0].partitions[0].error_code
        parked = two.begin(old, fetch_request(GROUP, "other", 0, two.place, max_wait_ms=60_000,
                                              min_bytes=5000))  # fmt: skip
        assert isinstance(parked, Pending)
        two.partition.move_to(new)
        two.run_for(100)
        assert parked.done()
        (row,) = parked.result().responses[0].partitions
        assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert row.current_leader.leader_id == new
        lost = two.ask(old, acknowledge_request(GROUP, "one", 2, {two.place: [(3, 7, [1])]}))
        (lost_row,) = lost.responses[0].partitions
        assert lost_row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert lost_row.current_leader.leader_id == 0
        assert acquired(two.ask(new, open_)) == [(2, 2, 2), (3, 7, 1)]
        again = two.ask(old, fetch_request(GROUP, "one", 3, max_wait_ms=0))
        assert again.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_write_of_the_former_leader_is_fenced() -> None:
    two = Two()
    with two.cluster:
        two.fill(4)
        old = two.partition.leader
        open_ = fetch_request(GROUP, "one", 0, two.place)
        assert acquired(two.ask(old, open_)) == [(0, 3, 1)]
        two.state.is_slow = True
        told = acknowledge_request(GROUP, "one", 1, {two.place: [(0, 3, [1])]})
        waiting = two.begin(old, told)
        two.state.states[GROUP, (two.topic[1], 0)].leader_epoch = 99
        two.state.go_on()
        (row,) = waiting.result().responses[0].partitions
        assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert row.current_leader.leader_id == old


def test_a_leader_of_a_later_term_begins_with_the_stored_state() -> None:
    two = Two()
    with two.cluster:
        two.fill(4)
        old = two.partition.leader
        open_ = fetch_request(GROUP, "one", 0, two.place)
        assert acquired(two.ask(old, open_)) == [(0, 3, 1)]
        two.partition.move_to(3 - old)
        two.run_for(100)
        two.partition.move_to(old)
        two.run_for(100)
        told = acknowledge_request(GROUP, "one", 1, {two.place: [(0, 3, [1])]})
        (row,) = two.ask(old, told).responses[0].partitions
        assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert acquired(two.ask(old, open_)) == [(0, 3, 1)]
