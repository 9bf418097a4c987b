"""Terms of leaders and followers: no offset, answer or setting of one counts in another."""

from __future__ import annotations

from collections.abc import Callable
from errno import ENOSPC
from types import SimpleNamespace

import pytest

from embedlog import errors
from embedlog.replication.delayed_fetch import DelayedFetch
from embedlog.replication.delayed_produce import commit_state
from embedlog.replication.fetcher.followed_partition import FollowedPartition
from embedlog.replication.fetcher.session import FollowerSession
from embedlog.replication.leader_and_isr import LeaderAndIsr
from embedlog.replication.partition import Partition
from embedlog.runtime.pending import Pending
from tests.replication.brokers import CONTROLLER, Brokers
from tests.replication.test_in_sync import follower_fetch
from wire.error_codes import ErrorCode
from wire.records.encode.builder import build_batch
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState

MakeBrokers = Callable[..., Brokers]
NOW = 1_700_000_000_000


def test_an_older_decision_is_ignored(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    older = brokers.state()
    brokers.controller.elect(2)
    partition = brokers[1].partition()
    partition.apply(older, 1)
    assert not partition.is_leader
    assert partition.leader == 2


def test_a_leader_that_is_elected_again_knows_no_offsets_of_its_former_term(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    brokers.append(1, b"a")
    brokers.run(600)
    brokers.isolate(2)
    brokers.controller.withheld = {2}
    brokers.controller.change(leader_epoch=1)
    remote = brokers[1].partition().remote_replicas
    assert remote is not None
    replica = remote.find(2)
    assert replica is not None
    assert replica.log_end_offset == -1
    brokers.heal()
    brokers.controller.tell_all(2)
    brokers.run(1_000)


def test_a_follower_tracks_no_replicas(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    assert brokers[1].partition().remote_replicas is not None
    brokers.controller.elect(2)
    assert brokers[1].partition().remote_replicas is None


def test_a_partition_that_was_deleted_has_no_leader(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    partition = brokers[2].partition()
    partition.retire()
    assert partition.leader == -1
    brokers.controller.states.clear()


def test_a_full_disk_does_not_keep_a_broker_from_leading(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    brokers.append(1, b"a")
    brokers.run(600)
    files = brokers[2].files
    files.fail(files.calls, ENOSPC, forever=True)
    brokers.controller.elect(2)
    assert brokers[2].partition().is_leader
    files.heal()
    brokers.append(2, b"b")
    brokers.run(2_000)
    assert brokers[2].partition().log.epochs.cache.entries == [(0, 0), (1, 1)]


def test_records_commit_after_the_leaders_own_sync(
    make_brokers: MakeBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = make_brokers(2, durability="fsync")
    brokers.controller.create(1, 2)
    brokers.run(600)
    with monkeypatch.context() as patched:
        patched.setattr(Partition, "sync", lambda _: None)
        brokers.append(1, b"a")
        brokers.run(2_000)
    assert brokers.offsets()[2][1] == 1, "the follower has it"
    assert brokers.offsets()[1] == (0, 1)
    brokers[1].partition().sync()
    assert brokers.offsets()[1] == (1, 1)
    brokers.run(2_000)


def test_a_raised_min_insync_replicas_holds_at_once(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    brokers.controller.fence(2)
    brokers[2].replica_manager.fetchers.hold(brokers[2].partition().topic_partition)
    brokers.run(600)
    partition = brokers[1].partition()
    partition.configure(min_insync_replicas=2)
    brokers.append(1, b"a")
    assert brokers.offsets()[1] == (0, 1)
    partition.configure(min_insync_replicas=1)
    assert brokers.offsets()[1] == (1, 1)


class Answers:
    """A controller whose answers wait until the test gives them."""

    def __init__(self, brokers: Brokers) -> None:
        self.waiting: list[Pending[LeaderAndIsr]] = []
        membership = brokers[1].membership

        def alter(*_: object, **__: object) -> Pending[LeaderAndIsr]:
            self.waiting.append(Pending())
            return self.waiting[-1]

        membership.alter_partition = alter  # type: ignore[method-assign]


def _joining(brokers: Brokers) -> tuple[Answers, Partition]:
    """Let broker 3 catch up with leader 1, which proposes to add it to the ISR."""
    answers = Answers(brokers)
    brokers.controller.create(1, 2, min_isr=2)
    brokers.controller.change(replicas=(1, 2, 3), offline_replicas=(4,))
    brokers.run(600)
    assert len(answers.waiting) == 1
    return answers, brokers[1].partition()


def test_an_answer_leaves_the_settings_that_it_does_not_have(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(3)
    answers, partition = _joining(brokers)
    changed = partition.state.replace(
        isr=(1, 2, 3),
        partition_epoch=partition.state.partition_epoch + 1,
        min_insync_replicas=1,
        offline_replicas=(),
    )
    answers.waiting[0].complete(changed)
    assert partition.isr == (1, 2, 3)
    assert partition.min_isr == 2
    assert partition.state.offline_replicas == (4,)


def test_an_answer_of_a_later_term_waits_for_the_metadata(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(3)
    answers, partition = _joining(brokers)
    state = partition.state
    answers.waiting[0].complete(
        state.replace(isr=(1, 2, 3), leader_epoch=1, partition_epoch=state.partition_epoch + 1)
    )
    assert partition.state == state


def test_a_refused_candidate_no_longer_holds_the_high_watermark(
    make_brokers: MakeBrokers, completed: list[str]
) -> None:
    brokers = make_brokers(3)
    answers, partition = _joining(brokers)
    brokers[3].replica_manager.fetchers.hold(partition.topic_partition)
    brokers.run(1)
    pending = brokers[1].replica_manager.await_append(
        60_000, partition, brokers.append(1, b"a", acks=-1)
    )
    brokers.run(600)
    assert brokers.offsets()[1] == (0, 1)
    brokers.controller.alive.discard(3)
    assert isinstance(pending, Pending)
    assert not pending.done()
    answers.waiting[0].fail(errors.IneligibleReplica())
    assert brokers.offsets()[1] == (1, 1)
    assert pending.done()
    assert completed[-1] == "DelayedAppend"


def test_an_outdated_proposal_is_not_sent_again(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(3)
    answers, _ = _joining(brokers)
    answers.waiting[0].fail(errors.InvalidUpdateVersion())
    brokers.run(5_000)
    assert len(answers.waiting) == 1


def test_committed_records_are_acknowledged_though_the_log_has_failed_since(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers(1)
    brokers.controller.create(1)
    brokers.append(1, b"a")
    partition = brokers[1].partition()
    partition.log.health.refuse(OSError(5, "simulated"))
    assert commit_state(partition, 1) == ErrorCode.NONE
    assert commit_state(partition, 2) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_fetch_that_was_abandoned_reads_and_answers_nothing() -> None:
    params = SimpleNamespace(max_wait_ms=100)
    fetch = DelayedFetch(None, params, None, lambda _: None)  # type: ignore[arg-type]
    fetch.abandon()
    assert not fetch.pending.done()


def test_a_fetch_below_the_log_start_tells_nothing_of_a_follower(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers(2)
    brokers.net.cut = {(2, 1)}
    brokers.controller.create(1, 2)
    brokers.controller.change(isr=(1,))
    brokers.controller.alive.discard(2)
    for _ in range(4):
        brokers.append(1, b"a")
    partition = brokers[1].partition()
    partition.delete_records(3)
    assert partition.remote_replicas is not None
    replica = partition.remote_replicas.find(2)
    assert replica is not None
    follower_fetch(brokers, 2, 201, offset=1)
    assert replica.log_end_offset == -1
    follower_fetch(brokers, 2, 201, offset=3)
    assert replica.log_end_offset == 3
    brokers.controller.alive.add(2)
    brokers.heal()
    brokers.run(2_000)


def test_a_fetch_of_other_records_acknowledges_nothing(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    brokers.net.cut = {(2, 1)}
    brokers.controller.create(1, 2)
    brokers.controller.change(isr=(1,), leader_epoch=1)
    brokers.append(1, b"a")
    brokers.append(1, b"b")
    partition = brokers[1].partition()
    assert partition.remote_replicas is not None
    replica = partition.remote_replicas.find(2)
    assert replica is not None
    for epoch, end in ((0, -1), (1, 2)):
        asked = FetchPartition(fetch_offset=2, last_fetched_epoch=epoch, partition_max_bytes=100)
        topic = FetchTopic(topic_id=partition.topic_id, partitions=[asked])
        state = ReplicaState(replica_id=2, replica_epoch=201)
        brokers[1].handle(FetchRequest(replica_state=state, topics=[topic]))
        assert replica.log_end_offset == end
    brokers.heal()
    brokers.run(2_000)


# Followers


def _followed(brokers: Brokers) -> FollowedPartition:
    """Return what a fetcher of broker 2 would follow, after a fetch was sent."""
    brokers.net.cut = {(2, 1)}
    brokers.controller.create(1, 2)
    followed = FollowedPartition(brokers[2].partition())
    followed.begin()
    followed.asked(1_000)
    return followed


def _sent(offset: int) -> bytes:
    return build_batch([b"%d" % offset], timestamps=NOW, base_offset=offset, leader_epoch=0)


def _append(followed: FollowedPartition, records: bytes, **offsets: int) -> bool:
    offsets = {"high_watermark": 0, "log_start_offset": 0, **offsets}
    return followed.append(records, now_ms=NOW, **offsets)


def test_an_answer_to_an_earlier_offset_is_not_appended(make_brokers: MakeBrokers) -> None:
    followed = _followed(make_brokers(2))
    log = followed.partition.log
    _append(followed, _sent(0))
    assert log.log_end_offset == 1
    assert not _append(followed, _sent(1), high_watermark=1)
    assert (log.log_end_offset, log.offsets.high_watermark) == (1, 0)
    followed.asked(1_000)
    assert _append(followed, _sent(1), high_watermark=1)
    assert (log.log_end_offset, log.offsets.high_watermark) == (2, 1)


def test_an_answer_of_another_leader_is_not_appended(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(3)
    followed = _followed(brokers)
    brokers.net.cut |= {(2, 3)}
    brokers.controller.change(leader=-1, leader_epoch=0)
    _append(followed, _sent(0))
    assert followed.partition.log.log_end_offset == 0


def test_a_log_start_above_the_own_watermark_is_followed_as_far_as_possible(
    make_brokers: MakeBrokers,
) -> None:
    followed = _followed(make_brokers(2))
    offsets = followed.partition.log.offsets
    for number in range(3):
        _append(followed, _sent(number))
        followed.asked(1_000)
    assert _append(followed, b"", high_watermark=2, log_start_offset=3)
    assert (offsets.log_start_offset, offsets.high_watermark) == (2, 2)


def test_a_log_that_reaches_the_leaders_start_is_not_emptied(make_brokers: MakeBrokers) -> None:
    followed = _followed(make_brokers(2))
    _append(followed, _sent(0))
    followed.start_at(1)
    assert followed.partition.log.offsets.log_start_offset == 0
    followed.start_at(2)
    assert followed.partition.log.offsets.log_start_offset == 2


def test_a_new_leader_is_asked_though_its_fetcher_backs_off(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2, replica_fetch_backoff_ms=5_000)
    brokers.controller.create(1, 2)
    brokers.run(600)
    brokers.net.cut = {(2, 1)}
    brokers.run(1_000)
    brokers.append(1, b"a")
    brokers.heal()
    brokers.run(1_000)
    assert brokers.offsets()[2][1] == 0, "it backs off"
    brokers.controller.change(leader_epoch=1)
    brokers.run(100)
    assert brokers.offsets()[2][1] == 1
    brokers.run(1_000)


def test_a_partition_that_returns_to_a_session_is_not_forgotten(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    followed = _followed(brokers)
    session = FollowerSession(2, brokers[2].membership)
    session.add(followed)
    first = session.next_request()
    assert first is not None
    session.answered(first, 77)
    session.remove(followed)
    session.add(followed)
    request = session.next_request()
    assert request is not None
    assert (request.session_id, len(request.topics)) == (77, 1)
    assert not request.forgotten_topics_data


def test_after_the_last_epoch_of_a_session_comes_1(
    make_brokers: MakeBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embedlog.replication.fetcher.session.EPOCH_MAX", 3)
    brokers = make_brokers(2)
    followed = _followed(brokers)
    session = FollowerSession(2, brokers[2].membership)
    session.add(followed)
    first = session.next_request()
    assert first is not None
    session.answered(first, 77)
    epochs = []
    for _ in range(5):
        request = session.next_request()
        assert request is not None
        epochs.append(request.session_epoch)
    assert epochs == [1, 2, 3, 1, 2]


@pytest.mark.parametrize("is_cut", [False, True])
def test_data_of_an_overtaken_answer_is_fetched_again(
    make_brokers: MakeBrokers, is_cut: bool
) -> None:
    """A partition is added while the answer with records of another one is on its way."""
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    brokers.run(600)
    brokers.net.delay_ms = lambda: 50
    brokers.append(1, b"a")
    brokers.run(60)
    brokers.controller.create(1, 2, index=1)
    if is_cut:
        brokers.net.cut = {(1, CONTROLLER)}
    brokers.append(1, b"b", index=1)
    brokers.run(2_000)
    brokers.heal()
    assert brokers.offsets(0)[2][1] == brokers.offsets(1)[2][1] == 1
    brokers.run(2_000)
