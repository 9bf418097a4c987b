"""The requests of a share session."""

from __future__ import annotations

from embedlog.client.share.session import FetchLimits, ShareSession

ID, OTHER = b"i" * 16, b"o" * 16
EPOCH_MAX = 2**31 - 1
LIMITS = FetchLimits(max_wait_ms=1, min_bytes=1, max_bytes=9, count_max=5, is_record_limit=False)


def places(topics: object) -> list[tuple[bytes, int]]:
    return [
        (topic.topic_id, getattr(each, "partition_index", each))
        for topic in topics  # type: ignore[attr-defined]
        for each in topic.partitions
    ]


def test_a_fetch_names_what_enters_and_what_leaves() -> None:
    session = ShareSession("workers", "me")
    opening = session.fetch([(ID, 0), (ID, 1)], {}, LIMITS)
    assert opening.share_session_epoch == 0
    assert places(opening.topics) == [(ID, 0), (ID, 1)]
    session.answered()
    following = session.fetch([(ID, 1), (OTHER, 0)], {}, LIMITS)
    assert following.share_session_epoch == 1
    assert places(following.topics) == [(OTHER, 0)]
    assert places(following.forgotten_topics_data) == [(ID, 0)]
    session.answered()
    assert not session.fetch([(ID, 1), (OTHER, 0)], {}, LIMITS).topics


def test_acknowledgements_of_another_partition_do_not_keep_it_in_the_session() -> None:
    session = ShareSession("workers", "me")
    session.fetch([(ID, 0)], {}, LIMITS)
    session.answered()
    fetch = session.fetch([(ID, 0)], {(ID, 1): {4: 1, 5: 1}}, LIMITS)
    assert places(fetch.topics) == places(fetch.forgotten_topics_data) == [(ID, 1)]
    (batch,) = fetch.topics[0].partitions[0].acknowledgement_batches
    assert (batch.first_offset, batch.last_offset, batch.acknowledge_types) == (4, 5, [1])


def test_the_epoch_wraps_to_one() -> None:
    session = ShareSession("workers", "me")
    session.epoch = EPOCH_MAX
    session.answered()
    assert session.epoch == 1


def test_a_new_session_names_everything() -> None:
    session = ShareSession("workers", "me")
    session.fetch([(ID, 0)], {}, LIMITS)
    session.answered()
    session.reset()
    again = session.fetch([(ID, 0)], {}, LIMITS)
    assert again.share_session_epoch == 0
    assert places(again.topics) == [(ID, 0)]


def test_the_last_request_has_the_epoch_minus_one() -> None:
    session = ShareSession("workers", "me")
    session.fetch([(ID, 0)], {}, LIMITS)
    session.answered()
    request = session.acknowledge({(ID, 0): {1: 2}}, renews=False, closes=True)
    assert request.share_session_epoch == -1
    assert places(request.topics) == [(ID, 0)]
