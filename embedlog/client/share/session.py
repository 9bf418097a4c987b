"""`ShareSession`: a share consumer's session with one leader, and the requests in it.

Every accepted ShareFetch or ShareAcknowledge takes the next epoch of the session. Epoch 0 opens a
session and may carry no acknowledgement. A fetch names only the partitions that enter the session
or carry acknowledgements.
"""

from __future__ import annotations

from embedlog.client.share.wire_batches import wire_batches
from wire.schemas import share_acknowledge, share_fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Place = tuple[bytes, int]
    """Topic id and partition number."""
    TypesByPlace = Mapping[Place, Mapping[int, int]]
    """By place, the acknowledgement type of each offset."""

_EPOCH_MAX = 2**31 - 1
_CLOSING = -1


class FetchLimits:
    """The limits of a fetch, from the settings."""

    __slots__ = ("acquire_mode", "count_max", "max_bytes", "max_wait_ms", "min_bytes")

    def __init__(
        self,
        *,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        count_max: int,
        is_record_limit: bool,
    ) -> None:
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.count_max = count_max
        self.acquire_mode = int(is_record_limit)


class ShareSession:
    """The state of one session."""

    def __init__(self, group_id: str, member_id: str) -> None:
        self._group_id = group_id
        self._member_id = member_id
        self.epoch = 0
        """Epoch of the next request; 0 if it opens the session."""
        self._partitions: frozenset[Place] = frozenset()
        self.reset_count = 0
        """How often the session was lost."""

    def fetch(
        self, wanted: Iterable[Place], types: TypesByPlace, limits: FetchLimits
    ) -> share_fetch.ShareFetchRequest:
        """Return a fetch of the partitions `wanted`, with acknowledgements.

        Requires: there are no acknowledgements unless the session is open.
        """
        assert self.epoch or not types, types
        chosen = frozenset(wanted)
        topics: dict[bytes, share_fetch.FetchTopic] = {}
        for place in sorted((chosen - self._partitions) | types.keys()):
            topic = topics.setdefault(place[0], share_fetch.FetchTopic(topic_id=place[0]))
            batches = [
                share_fetch.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=kinds
                )
                for first, last, kinds in wire_batches(types.get(place, {}))
            ]
            topic.partitions.append(
                share_fetch.FetchPartition(
                    partition_index=place[1], acknowledgement_batches=batches
                )
            )
        forgotten: dict[bytes, share_fetch.ForgottenTopic] = {}
        # A partition enters the session with its acknowledgements, and must leave it at once.
        for topic_id, number in sorted((self._partitions | types.keys()) - chosen):
            gone = forgotten.setdefault(topic_id, share_fetch.ForgottenTopic(topic_id=topic_id))
            gone.partitions.append(number)
        self._partitions = chosen
        return share_fetch.ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=self.epoch,
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            max_records=limits.count_max,
            batch_size=limits.count_max,
            share_acquire_mode=limits.acquire_mode,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
        )

    def acknowledge(
        self, types: TypesByPlace, *, renews: bool, closes: bool = False
    ) -> share_acknowledge.ShareAcknowledgeRequest:
        """Return a request with acknowledgements only.

        Requires: the session is open, or `closes` and the opening fetch is under way.
        """
        assert self.epoch or (closes and not types), self
        topics: dict[bytes, share_acknowledge.AcknowledgeTopic] = {}
        for place in sorted(types):
            topic = topics.setdefault(
                place[0], share_acknowledge.AcknowledgeTopic(topic_id=place[0])
            )
            batches = [
                share_acknowledge.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=kinds
                )
                for first, last, kinds in wire_batches(types[place])
            ]
            topic.partitions.append(
                share_acknowledge.AcknowledgePartition(
                    partition_index=place[1], acknowledgement_batches=batches
                )
            )
        return share_acknowledge.ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=_CLOSING if closes else self.epoch,
            is_renew_ack=renews,
            topics=list(topics.values()),
        )

    def answered(self) -> None:
        """Note that the leader has accepted the request with the present epoch."""
        self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1

    def reset(self) -> None:
        """Open a new session with the next fetch: this one is lost, or its state is unknown."""
        self.epoch = 0
        self._partitions = frozenset()
        self.reset_count += 1
