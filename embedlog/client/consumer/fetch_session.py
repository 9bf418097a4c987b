"""The client's half of a fetch session (KIP-227): name each partition once, then only changes.

The first request has epoch 0 and names every partition; the broker answers with a session id.
Later requests name only partitions that are new, have moved or are no longer read. After any error
the client ends the session, and the next request names every partition again.

In process a fetch of one partition uses no session (epoch -1), which saves a dozen function calls.
With two partitions both ways cost the same, because an answer without a session has every
partition.
"""

from __future__ import annotations

from wire.error_codes import ErrorCode
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.consumer.subscription_state import PartitionState
    from embedlog.common import TopicPartition
    from embedlog.runtime.pending import Pending

    # (topic id, leader epoch, fetch offset, max bytes)
    Wanted = tuple[bytes, int, int, int]

_INITIAL_EPOCH = 0
_FINAL_EPOCH = -1
_EPOCH_MAX = 2**31 - 1

BROKEN_SESSION = frozenset(
    (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
)
"""Errors of a whole fetch response; a new session cures them."""


class FetchSession:
    """The session with one broker. At most one request may be open."""

    __slots__ = ("_epoch", "_known", "session_id")

    def __init__(self) -> None:
        self.session_id = 0
        self._epoch = _INITIAL_EPOCH
        self._known: dict[TopicPartition, Wanted] = {}
        """The partitions of the session as the broker knows them, from the last request."""

    def request(self, wanted: dict[TopicPartition, Wanted], **limits: Any) -> FetchRequest:
        """Build a request for `wanted`; `limits` are further fields of FetchRequest."""
        known = self._known
        if self._epoch == _INITIAL_EPOCH:
            named = wanted
            forgotten: list[TopicPartition] = []
        else:
            named = {key: want for key, want in wanted.items() if known.get(key) != want}
            forgotten = [key for key in known if key not in wanted]
        # A topic that was deleted and created again has a new id: let the broker forget the old id.
        replaced = [key for key in named if key in known and known[key][0] != named[key][0]]
        request = FetchRequest(
            session_id=self.session_id,
            session_epoch=self._epoch,
            topics=_by_topic(named),
            forgotten_topics_data=_forgotten([*forgotten, *replaced], known),
            **limits,
        )
        self._known = dict(wanted)
        return request

    def full_request(self, wanted: dict[TopicPartition, Wanted], **limits: Any) -> FetchRequest:
        """Build a request without a session. It ends the session that the broker may hold."""
        session_id = self.session_id
        if session_id or self._known:
            self.reset(keep_id=False)
        return FetchRequest(
            session_id=session_id,
            session_epoch=_FINAL_EPOCH,
            topics=_by_topic(wanted),
            **limits,
        )

    def answered(self, error_code: int, session_id: int) -> bool:
        """Update the session after an answer; False if it is an error, without partitions."""
        if error_code:
            # After any error but "unknown session" the broker may still hold the session: keep its
            # id, so that the next request ends it.
            self.reset(keep_id=error_code != ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            return False
        if session_id == 0:
            if self._known:
                self.reset(keep_id=False)
        else:
            self.session_id = session_id
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1
        return True

    def reset(self, *, keep_id: bool = True) -> None:
        """Begin a new session: the next request names every partition.

        With `keep_id`, that request also ends the old session at the broker.
        """
        if not keep_id:
            self.session_id = 0
        self._epoch = _INITIAL_EPOCH
        self._known = {}

    def closing_request(self) -> FetchRequest | None:
        """Return the request that ends the session, or None without a session."""
        if self.session_id == 0:
            return None
        return FetchRequest(
            session_id=self.session_id, session_epoch=_FINAL_EPOCH, max_wait_ms=0, min_bytes=0
        )


class SentFetch:
    """A sent fetch, with each partition's state, generation and offset at the time of sending."""

    __slots__ = ("partitions", "pending", "session")

    def __init__(
        self,
        session: FetchSession,
        partitions: dict[tuple[str, int], tuple[PartitionState, int, int]],
        pending: Pending[Any],
    ) -> None:
        self.session = session
        self.partitions = partitions
        self.pending = pending


def _by_topic(named: dict[TopicPartition, Wanted]) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for (topic, partition), (topic_id, leader_epoch, offset, max_bytes) in named.items():
        entry = topics.get(topic)
        if entry is None:
            entry = topics[topic] = FetchTopic(topic=topic, topic_id=topic_id)
        entry.partitions.append(
            FetchPartition(
                partition=partition,
                current_leader_epoch=leader_epoch,
                fetch_offset=offset,
                partition_max_bytes=max_bytes,
            )
        )
    return list(topics.values())


def _forgotten(
    keys: list[TopicPartition], known: dict[TopicPartition, Wanted]
) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for key in keys:
        name, topic_id = key[0], known[key][0]
        entry = topics.get((name, topic_id))
        if entry is None:
            entry = topics[name, topic_id] = ForgottenTopic(topic=name, topic_id=topic_id)
        entry.partitions.append(key[1])
    return list(topics.values())
