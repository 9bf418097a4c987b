"""Fetch sessions: the table of KIP-227, news, and eviction from a full cache."""

from __future__ import annotations

import pytest

from embedlog import errors
from embedlog.replication.fetch_context import FullFetch, IncrementalFetch
from embedlog.replication.fetch_reader import FetchRead
from embedlog.replication.fetch_session import FetchPartition as Wanted
from embedlog.replication.fetch_sessions import EPOCH_MAX, EVICTION_MS, FetchSessions
from embedlog.runtime import Random
from embedlog.runtime.clock import Clock
from wire.schemas.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

BY_NAME = 12
BY_ID = 13
TOPIC_IDS = {b"a" * 16: "a", b"b" * 16: "b"}


class ManualClock(Clock):
    """A clock that the test moves."""

    __slots__ = ("now_ms",)

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def monotonic_ms(self) -> int:
        return self.now_ms


class Peer:
    """The consumer's side of one session, and the broker's cache."""

    def __init__(self, sessions: FetchSessions, version: int = BY_NAME) -> None:
        self.sessions = sessions
        self.version = version
        self.topic_names = dict(TOPIC_IDS)

    def begin(self, request: FetchRequest) -> FullFetch | IncrementalFetch:
        return self.sessions.begin(
            request, self.version, lambda topic_id: self.topic_names.get(topic_id, "")
        )

    def fetch(self, request: FetchRequest, **data: PartitionData) -> FetchResponse:
        """Answer with `a0=PartitionData(...)`; other partitions are empty and unchanged."""
        fetch = self.begin(request)
        found = []
        for asked in wanted(fetch):
            given = data.get(f"{asked.topic}{asked.partition}")
            found.append(given or answer(asked.partition))
        return fetch.respond(FetchRead(wanted(fetch), found))


def wanted(fetch: FullFetch | IncrementalFetch) -> list[Wanted]:
    """Return all partitions that a fetch reads when none rests, in their order."""
    if isinstance(fetch, FullFetch):
        return list(fetch.wanted)
    return sorted(fetch.session.partitions.values(), key=lambda asked: asked.rank)


def answer(partition: int = 0, records: bytes = b"", **values: int) -> PartitionData:
    values = {"high_watermark": 5, "log_start_offset": 0, **values}
    return PartitionData(partition_index=partition, records=records, **values)


def ask(
    *topics: tuple[str, list[int]],
    id: int = 0,
    epoch: int = 0,
    forget: list[tuple[str, list[int]]] | None = None,
    replica_id: int = -1,
    offset: int = 0,
) -> FetchRequest:
    return FetchRequest(
        session_id=id,
        session_epoch=epoch,
        replica_state=ReplicaState(replica_id=replica_id),
        topics=[
            FetchTopic(
                topic=name,
                topic_id=name.encode() * 16,
                partitions=[
                    FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=100)
                    for index in indexes
                ],
            )
            for name, indexes in topics
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic=name, topic_id=name.encode() * 16, partitions=indexes)
            for name, indexes in forget or []
        ],
    )


def partitions_of(response: FetchResponse) -> list[tuple[str, int]]:
    return [
        (topic.topic, one.partition_index)
        for topic in response.responses
        for one in topic.partitions
    ]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def sessions(clock: ManualClock) -> FetchSessions:
    return FetchSessions(clock, Random(), slot_count=4)


@pytest.fixture(params=[BY_NAME, BY_ID], ids=["names", "ids"])
def peer(request: pytest.FixtureRequest, sessions: FetchSessions) -> Peer:
    return Peer(sessions, request.param)


def test_a_full_fetch_without_session_answers_every_partition(peer: Peer) -> None:
    response = peer.fetch(ask(("a", [0, 1]), ("b", [0]), epoch=-1))
    assert response.session_id == 0
    assert partitions_of(response) == [("a", 0), ("a", 1), ("b", 0)]
    assert len(peer.sessions) == 0


def test_an_initial_epoch_begins_a_session(peer: Peer) -> None:
    response = peer.fetch(ask(("a", [0, 1])))
    assert response.session_id > 0
    assert partitions_of(response) == [("a", 0), ("a", 1)]


def test_an_incremental_answer_has_only_news(peer: Peer) -> None:
    id = peer.fetch(ask(("a", [0, 1]), ("b", [0]))).session_id
    assert partitions_of(peer.fetch(ask(id=id, epoch=1))) == []
    with_records = peer.fetch(ask(id=id, epoch=2), a1=answer(1, b"records"))
    assert with_records.session_id == id
    assert partitions_of(with_records) == [("a", 1)]
    moved = peer.fetch(ask(id=id, epoch=3), b0=answer(0, high_watermark=6))
    assert partitions_of(moved) == [("b", 0)]
    trimmed = peer.fetch(ask(id=id, epoch=4), b0=answer(0, high_watermark=6, log_start_offset=2))
    assert partitions_of(trimmed) == [("b", 0)]
    same = peer.fetch(ask(id=id, epoch=5), b0=answer(0, high_watermark=6, log_start_offset=2))
    assert partitions_of(same) == []


def test_an_error_is_sent_each_time_and_its_end_is_news(peer: Peer) -> None:
    id = peer.fetch(ask(("a", [0]))).session_id
    failed = answer(0, error_code=3, high_watermark=-1)
    assert partitions_of(peer.fetch(ask(id=id, epoch=1), a0=failed)) == [("a", 0)]
    assert partitions_of(peer.fetch(ask(id=id, epoch=2), a0=failed)) == [("a", 0)]
    assert partitions_of(peer.fetch(ask(id=id, epoch=3))) == [("a", 0)]
    assert partitions_of(peer.fetch(ask(id=id, epoch=4))) == []


def test_a_session_adds_changes_and_forgets_partitions(peer: Peer) -> None:
    id = peer.fetch(ask(("a", [0]))).session_id
    assert partitions_of(peer.fetch(ask(("b", [7]), id=id, epoch=1))) == [("b", 7)]
    changed = peer.begin(ask(("a", [0]), id=id, epoch=2, offset=42))
    assert [(w.topic, w.partition, w.fetch_offset) for w in wanted(changed)] == [
        ("a", 0, 42),
        ("b", 7, 0),
    ]
    left = peer.begin(ask(id=id, epoch=3, forget=[("a", [0])]))
    assert [(w.topic, w.partition) for w in wanted(left)] == [("b", 7)]


def test_forgetting_the_last_partition_ends_the_session(peer: Peer) -> None:
    id = peer.fetch(ask(("a", [0]))).session_id
    response = peer.fetch(ask(id=id, epoch=1, forget=[("a", [0])]))
    assert (response.session_id, response.responses) == (0, [])
    with pytest.raises(errors.FetchSessionIdNotFound):
        peer.begin(ask(id=id, epoch=2))


def test_a_partition_with_records_goes_to_the_end(peer: Peer) -> None:
    id = peer.fetch(ask(("a", [0, 1, 2]))).session_id
    peer.fetch(ask(id=id, epoch=1), a0=answer(0, b"records"))
    assert [w.partition for w in wanted(peer.begin(ask(id=id, epoch=2)))] == [1, 2, 0]


def test_of_a_partition_named_twice_the_last_counts(peer: Peer) -> None:
    request = ask(("a", [0, 1]), ("a", [0]))
    request.topics[1].partitions[0].fetch_offset = 9
    fetch = peer.begin(request)
    assert [(w.partition, w.fetch_offset) for w in wanted(fetch)] == [(0, 9), (1, 0)]


@pytest.mark.parametrize("epoch", [2, 5, 0x7FFF])
def test_a_wrong_epoch_is_refused(peer: Peer, epoch: int) -> None:
    id = peer.fetch(ask(("a", [0]))).session_id
    with pytest.raises(errors.InvalidFetchSessionEpoch):
        peer.begin(ask(id=id, epoch=epoch))
    assert partitions_of(peer.fetch(ask(id=id, epoch=1))) == []


def test_an_unknown_session_is_refused(peer: Peer) -> None:
    with pytest.raises(errors.FetchSessionIdNotFound):
        peer.begin(ask(id=77, epoch=1))
    with pytest.raises(errors.FetchSessionIdNotFound):
        peer.begin(ask(id=0, epoch=3))


def test_the_final_epoch_ends_a_session(peer: Peer) -> None:
    id = peer.fetch(ask(("a", [0]))).session_id
    assert partitions_of(peer.fetch(ask(("a", [0]), id=id, epoch=-1))) == [("a", 0)]
    with pytest.raises(errors.FetchSessionIdNotFound):
        peer.begin(ask(id=id, epoch=1))


def test_the_initial_epoch_replaces_a_session(peer: Peer) -> None:
    id = peer.fetch(ask(("a", [0]))).session_id
    again = peer.fetch(ask(("a", [0]), id=id, epoch=0)).session_id
    assert len(peer.sessions) == 1
    assert partitions_of(peer.fetch(ask(id=again, epoch=1))) == []


def test_after_the_largest_epoch_comes_1(peer: Peer) -> None:
    id = peer.fetch(ask(("a", [0]))).session_id
    session = peer.sessions.find(id)
    assert session is not None
    session.epoch = EPOCH_MAX
    peer.fetch(ask(id=id, epoch=EPOCH_MAX))
    assert partitions_of(peer.fetch(ask(id=id, epoch=1))) == []


@pytest.mark.parametrize("first, then", [(BY_NAME, BY_ID), (BY_ID, BY_NAME)])
def test_a_session_does_not_mix_names_and_ids(
    sessions: FetchSessions, first: int, then: int
) -> None:
    id = Peer(sessions, first).fetch(ask(("a", [0]))).session_id
    with pytest.raises(errors.FetchSessionTopicIdError):
        Peer(sessions, then).begin(ask(id=id, epoch=1))


def test_an_answer_that_was_overtaken_is_refused(peer: Peer) -> None:
    id = peer.fetch(ask(("a", [0]))).session_id
    slow = peer.begin(ask(id=id, epoch=1))
    peer.begin(ask(id=id, epoch=2))
    response = slow.respond(FetchRead(wanted(slow), [answer()]))
    assert response.error_code == errors.InvalidFetchSessionEpoch.code


def test_an_unknown_topic_id_is_looked_up_again(sessions: FetchSessions) -> None:
    peer = Peer(sessions, BY_ID)
    del peer.topic_names[b"a" * 16]
    id = peer.fetch(ask(("a", [0]))).session_id
    assert [w.topic for w in wanted(peer.begin(ask(id=id, epoch=1)))] == [""]
    peer.topic_names[b"a" * 16] = "a"
    assert [w.key for w in wanted(peer.begin(ask(id=id, epoch=2)))] == [("a", 0)]


def begin_many(sessions: FetchSessions, *sizes: int, replica_id: int = -1) -> list[int]:
    peer = Peer(sessions)
    return [
        peer.fetch(ask(("a", list(range(size))), replica_id=replica_id)).session_id
        for size in sizes
    ]


def is_alive(sessions: FetchSessions, id: int) -> bool:
    return sessions.find(id) is not None


def test_a_full_cache_gives_no_session(sessions: FetchSessions) -> None:
    assert 0 not in begin_many(sessions, 1, 1, 1, 1)
    assert begin_many(sessions, 99) == [0]


def test_an_unused_session_is_evicted_after_two_minutes(
    sessions: FetchSessions, clock: ManualClock
) -> None:
    old = begin_many(sessions, 9, 9, 9, 9)
    clock.now_ms += EVICTION_MS
    Peer(sessions).fetch(ask(id=old[0], epoch=1))
    assert begin_many(sessions, 1) == [0]
    clock.now_ms += 1
    assert begin_many(sessions, 1) != [0]
    assert [is_alive(sessions, id) for id in old] == [True, False, True, True]


def test_a_larger_session_pushes_out_the_smallest_that_has_lived(
    sessions: FetchSessions, clock: ManualClock
) -> None:
    old = begin_many(sessions, 4, 2, 3, 5)
    clock.now_ms += EVICTION_MS + 1
    for id in old:
        Peer(sessions).fetch(ask(id=id, epoch=1))
    assert begin_many(sessions, 1) == [0]
    assert begin_many(sessions, 3) != [0]
    assert [is_alive(sessions, id) for id in old] == [True, False, True, True]


def test_a_follower_pushes_out_a_young_consumer_but_no_consumer_a_follower(
    sessions: FetchSessions, clock: ManualClock
) -> None:
    consumers = begin_many(sessions, 4, 4, 4, 4)
    follower = begin_many(sessions, 1, replica_id=2)
    assert follower != [0]
    assert sum(is_alive(sessions, id) for id in consumers) == 3
    clock.now_ms += EVICTION_MS + 1
    alive = [id for id in consumers if is_alive(sessions, id)]
    for id in [*alive, *follower]:
        Peer(sessions).fetch(ask(id=id, epoch=1))
    assert 0 not in begin_many(sessions, 99, 99, 99)
    assert begin_many(sessions, 99) == [0]
    assert is_alive(sessions, follower[0])


@pytest.mark.slow
def test_a_session_has_no_more_than_ten_thousand_partitions(
    sessions: FetchSessions,
) -> None:
    assert begin_many(sessions, 10_001) == [0]
    (id,) = begin_many(sessions, 10_000)
    assert sessions.size_of(id) == 10_000
    request = FetchRequest(
        session_id=id,
        session_epoch=1,
        topics=[FetchTopic(topic="more", partitions=[FetchPartition(partition=1)])],
    )
    with pytest.raises(errors.FetchSessionIdNotFound):
        sessions.begin(request, 12, lambda _id: "")
    assert len(sessions) == 0
    assert sessions.size_of(id) == 0


def test_an_evicted_session_makes_room_for_its_partitions(clock: ManualClock) -> None:
    many = FetchSessions(clock, Random(), slot_count=1, total_size_max=10)
    for _ in range(4):
        assert begin_many(many, 6) != [0]
        clock.now_ms += EVICTION_MS + 1


def test_after_an_error_or_a_diverging_epoch_the_watermark_is_news() -> None:
    asked = Wanted("a", bytes(16), FetchPartition())
    asked.note_answered(answer())
    assert not asked.has_news(answer())
    asked.note_answered(answer(error_code=6))
    assert asked.has_news(answer())
    diverging = answer()
    diverging.diverging_epoch = EpochEndOffset(epoch=3, end_offset=1)
    asked.note_answered(diverging)
    assert asked.has_news(answer())


@pytest.mark.parametrize(("replica_id", "is_news"), [(2, True), (-1, False)])
def test_a_follower_in_a_new_term_gets_the_watermark_again(
    sessions: FetchSessions, replica_id: int, is_news: bool
) -> None:
    (id,) = begin_many(sessions, 1, replica_id=replica_id)
    request = ask(("a", [0]), id=id, epoch=1, replica_id=replica_id)
    request.topics[0].partitions[0].current_leader_epoch = 5
    (asked,) = wanted(sessions.begin(request, 12, lambda _: ""))
    assert asked.has_news(answer()) == is_news


@pytest.mark.slow
def test_all_sessions_have_no_more_than_a_hundred_thousand_partitions(
    clock: ManualClock,
) -> None:
    many = FetchSessions(clock, Random(), slot_count=1_000)
    ids = begin_many(many, *[10_000] * 11, 5_000)
    assert ids[-2:] == [0, 0]
    assert 0 not in ids[:-2]
    clock.now_ms += EVICTION_MS + 1
    assert begin_many(many, 10_000) != [0], "an old one gave way"
    assert len(many) == 10
