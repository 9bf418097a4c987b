"""What a leader concludes from the fetches of the other replicas, rule by rule."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from embedlog.replication.leader_and_isr import LeaderAndIsr
from embedlog.replication.remote_replicas import RemoteReplicas, Replica

LAG_MS = 1_000


class World:
    """Broker 1 leads; brokers 2 and 3 have replicas. Their broker epochs are 102 and 103."""

    def __init__(
        self,
        isr: tuple[int, ...] = (1, 2, 3),
        *,
        start: int = 0,
        min_isr: int = 1,
        offline: tuple[int, ...] = (),
    ) -> None:
        self.now_ms = 10 * LAG_MS
        self.alive = {1, 2, 3}
        self.epochs = {1: 101, 2: 102, 3: 103}
        membership = SimpleNamespace(
            config=SimpleNamespace(replica_lag_time_max_ms=LAG_MS),
            broker_epoch=101,
            epoch_of=self.epochs.get,
            is_eligible=lambda node_id: node_id in self.alive,
            rack_of=lambda node_id: "leader's" if node_id == 1 else "others'",
        )
        self.state = LeaderAndIsr(
            leader=1,
            leader_epoch=4,
            partition_epoch=7,
            replicas=(1, 2, 3),
            isr=isr,
            min_insync_replicas=min_isr,
            offline_replicas=offline,
        )
        self.remote = RemoteReplicas(
            1,
            self.state,
            membership,  # type: ignore[arg-type]
            lambda: self.now_ms,
            epoch_start_offset=start,
        )

    def fetch(
        self,
        node_id: int,
        offset: int,
        *,
        end: int,
        epoch: int | None = None,
        start: int = 0,
        used_ms: int | None = None,
    ) -> Replica:
        replica = self.remote.find(node_id)
        assert replica is not None
        replica.fetched(
            offset,
            log_start_offset=start,
            end_offset=end,
            broker_epoch=self.epochs[node_id] if epoch is None else epoch,
            now_ms=self.now_ms,
            session_used_ms=lambda: used_ms,
        )
        return replica


def test_a_replica_that_reaches_an_earlier_end_was_caught_up_when_that_was_the_end() -> None:
    world = World()
    world.fetch(2, 5, end=10)
    world.now_ms += 600
    replica = world.fetch(2, 10, end=20)
    world.now_ms += 600
    assert not world.remote.is_caught_up(replica, 20)
    world.now_ms -= 300
    assert world.remote.is_caught_up(replica, 20)


def test_a_replica_that_rests_was_seen_when_its_session_was_used() -> None:
    world = World()
    begin_ms = world.now_ms
    replica = world.fetch(2, 10, end=10, used_ms=begin_ms + 5_000)
    world.now_ms = begin_ms + 5_100
    world.remote.appended(10)
    assert world.remote.is_caught_up(replica, 11)
    world.now_ms += LAG_MS
    assert not world.remote.is_caught_up(replica, 11)


@pytest.mark.parametrize(("end", "joins"), [(19, False), (20, True)])
def test_a_candidate_has_the_begin_of_the_term(end: int, joins: bool) -> None:
    world = World((1, 2), start=20)
    replica = world.fetch(3, end, end=30)
    proposal = world.remote.propose_with(replica, 10)
    assert (proposal is not None) == joins


@pytest.mark.parametrize(("end", "joins"), [(24, False), (25, True)])
def test_a_candidate_has_all_committed_records(end: int, joins: bool) -> None:
    world = World((1, 2), start=20)
    replica = world.fetch(3, end, end=30)
    proposal = world.remote.propose_with(replica, 25)
    assert (proposal is not None) == joins


def test_a_candidate_has_not_restarted_since_its_fetch() -> None:
    world = World((1, 2))
    replica = world.fetch(3, 5, end=5)
    world.epochs[3] = 203
    assert world.remote.propose_with(replica, 5) is None
    replica = world.fetch(3, 5, end=5)
    proposal = world.remote.propose_with(replica, 5)
    assert proposal is not None
    assert proposal.with_epochs == [(1, 101), (2, -1), (3, 203)]


def test_a_candidate_is_not_offline() -> None:
    world = World((1, 2), offline=(3,))
    assert world.remote.propose_with(world.fetch(3, 5, end=5), 5) is None


def test_no_fetch_from_before_a_restart_counts() -> None:
    world = World()
    assert world.remote.is_outdated(2, 101)
    assert not world.remote.is_outdated(2, 102)
    assert not world.remote.is_outdated(2, -1)


def test_one_proposal_at_a_time() -> None:
    world = World((1, 2))
    world.fetch(2, 0, end=5)
    assert world.remote.propose_with(world.fetch(3, 5, end=5), 5) is not None
    world.now_ms += 2 * LAG_MS
    assert world.remote.propose_without_lagging(5) is None
    world.remote.take(world.state)
    proposal = world.remote.propose_without_lagging(5)
    assert proposal is not None
    assert proposal.isr == (1,)


def test_a_candidate_that_has_caught_up_holds_the_committed_offset() -> None:
    world = World((1, 2))
    world.fetch(2, 10, end=10)
    world.fetch(3, 8, end=8)
    assert world.remote.committed_offset(10, 10) == 8
    world.alive.discard(3)
    assert world.remote.committed_offset(10, 10) == 10, "it cannot join"
    world.alive.add(3)
    world.now_ms += 2 * LAG_MS
    assert world.remote.committed_offset(10, 10) == 10, "it lags"


def test_too_few_in_sync_commit_nothing() -> None:
    world = World((1,), min_isr=2)
    assert world.remote.committed_offset(10, 10) == 0
    world = World((1, 2), min_isr=2)
    world.fetch(2, 7, end=10)
    assert world.remote.committed_offset(10, 10) == 7


def test_the_low_watermark_waits_for_live_replicas_with_a_directory() -> None:
    world = World()
    world.fetch(2, 10, end=10, start=4)
    assert world.remote.low_watermark(6) == -1
    world.fetch(3, 10, end=10, start=2)
    assert world.remote.low_watermark(6) == 2
    world.alive.discard(3)
    assert world.remote.low_watermark(6) == 4
    world = World(offline=(3,))
    world.fetch(2, 10, end=10, start=4)
    assert world.remote.low_watermark(6) == 4


def test_a_consumer_is_sent_to_a_live_replica_that_has_its_offset() -> None:
    world = World()
    world.fetch(2, 10, end=10, start=5)
    assert world.remote.preferred_for("others'", 5) == 2
    assert world.remote.preferred_for("others'", 4) == -1, "deleted there"
    assert world.remote.preferred_for("others'", 11) == -1
    world.fetch(3, 10, end=10)
    assert world.remote.preferred_for("others'", 4) == 3
    world.alive.discard(3)
    assert world.remote.preferred_for("others'", 4) == -1
