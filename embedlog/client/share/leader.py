"""`Leader`: one broker that leads partitions, the session with it, and its one open request."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from embedlog.client.share.acknowledgements import Acknowledgements
    from embedlog.client.share.session import ShareSession
    from embedlog.common import TopicPartition
    from embedlog.runtime.pending import Pending


class SentRequest:
    """A ShareFetch or ShareAcknowledge without an answer."""

    __slots__ = ("acknowledgements", "is_fetch", "keys", "pending")

    def __init__(
        self,
        pending: Pending[Any],
        acknowledgements: list[Acknowledgements],
        keys: Mapping[tuple[bytes, int], TopicPartition] | None,
    ) -> None:
        """`keys` are the partitions of a fetch by place; None for a ShareAcknowledge."""
        self.pending = pending
        self.acknowledgements = acknowledgements
        self.is_fetch = keys is not None
        self.keys = keys or {}


class Leader:
    """What a share consumer knows about one leader. A leader has at most one open request."""

    __slots__ = (
        "failure_count",
        "is_uncertain",
        "node_id",
        "not_before_ms",
        "sent",
        "session",
        "told_reset_count",
        "waiting",
    )

    def __init__(self, node_id: int, session: ShareSession) -> None:
        self.node_id = node_id
        self.session = session
        self.sent: SentRequest | None = None
        self.waiting: list[Acknowledgements] = []
        """Acknowledgements that were not sent yet, or shall be sent again."""
        self.not_before_ms = 0
        """No request is sent before this time, because the last one failed."""
        self.is_uncertain = False
        """Whether Ctrl-C came inside a request: the leader may have delivered records that this
        client never got, and has to end the session, which releases them."""
        self.failure_count = 0
        """Failed requests since the last success."""
        self.told_reset_count = 0
        """Lost sessions that `ShareLeaders.lost_sessions` has told."""

    def take_waiting(
        self,
    ) -> tuple[list[Acknowledgements], dict[tuple[bytes, int], dict[int, int]]]:
        """Take the acknowledgements for one request; also return their types by place.

        An offset can be in a request only once, so later acknowledgements of it keep waiting.
        """
        chosen: list[Acknowledgements] = []
        kept: list[Acknowledgements] = []
        types: dict[tuple[bytes, int], dict[int, int]] = {}
        for one in self.waiting:
            at_place = types.setdefault(one.place, {})
            if at_place.keys().isdisjoint(one.types):
                at_place.update(one.types)
                chosen.append(one)
            else:
                kept.append(one)
        self.waiting = kept
        return chosen, types
