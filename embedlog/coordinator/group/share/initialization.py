"""The first state of share partitions: the group coordinator asks the share coordinator for it.

    1. a heartbeat finds partitions without state     -> they become "initializing" (type 15)
    2. once that is committed, without the lock       -> a request to the share coordinator
    3. its answer                                     -> "initialized", or "initializing" no more

An answer may get lost, for example with this broker. So partitions that are initializing for longer
than `group.share.initialize.retry.interval.ms` are begun again by a heartbeat.
"""

from __future__ import annotations

from embedlog.coordinator.group.share import member_records
from embedlog.coordinator.group.share.share_group import ShareGroup
from embedlog.coordinator.group.share.state_topics import named_of
from embedlog.coordinator.result import Result
from embedlog.errors import EmbedlogError
from embedlog.logger import Logger
from embedlog.runtime.pending import Pending
from wire.error_codes import ErrorCode

_log = Logger("group")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.share.membership import Membership
    from embedlog.coordinator.group.share.state_topics import Named, StateTopics
    from embedlog.coordinator.share.state_client import Place, ShareStateClient

    Codes = Mapping[Place, int]

ANY_START = -1
"""The start offset that lets share.auto.offset.reset decide when a member first fetches."""
FIRST_START = 0


class Initialization:
    """Initialises share partitions of one shard's groups. Requires: the shard's lock."""

    def __init__(self, membership: Membership, state: Callable[[], ShareStateClient]) -> None:
        self._groups = membership.groups
        self._context = membership.context
        self._state = state

    def missing(self, group: ShareGroup, topics: Iterable[str], metadata: MetadataImage) -> Named:
        """Return the partitions of these topics that have no state and that nobody has begun.

        Partitions whose beginning took too long count as not begun.
        """
        retry_ms = self._context.config.group_share_initialize_retry_interval_ms
        lost_ms = self._context.monotonic_ms() - retry_ms
        missing = {}
        for name in sorted(topics):
            topic = metadata.topics_by_name.get(name)
            if topic is None:
                continue
            known = group.state_topics.numbers_initialized(topic.topic_id)
            if group.begun_ms.get(topic.topic_id, lost_ms) > lost_ms:
                known |= group.state_topics.numbers_initializing(topic.topic_id)
            if len(known) < len(topic.partitions):
                numbers = frozenset(range(len(topic.partitions))) - known
                missing[topic.topic_id] = name, numbers
        return missing

    def note_begun(self, group_id: str, topic_ids: Iterable[bytes]) -> None:
        """Let the wait for the answer begin, perhaps again, for partitions of these topics."""
        group = self._groups.get(group_id)
        if isinstance(group, ShareGroup):
            group.begun_ms.update(dict.fromkeys(topic_ids, self._context.monotonic_ms()))

    def begin(
        self, group_id: str, state_epoch: int, starts: Mapping[Place, int], names: dict[bytes, str]
    ) -> Pending[Codes]:
        """Ask the share coordinator, and note its answer; complete with it once it is stored.

        `names` are the names of the topics. Requires: no lock. The records that begin the
        partitions are committed.
        """
        done: Pending[Codes] = Pending()

        def answered(pending: Pending[dict[Place, int]]) -> None:
            codes = _codes_of(pending, starts)
            stored = self._context.write(lambda _shard: self._note(group_id, codes, names))
            stored.add_callback(lambda written: _end(done, written, codes))

        self._state().initialize(group_id, state_epoch, starts).add_callback(answered)
        return done

    def _note(self, group_id: str, codes: Codes, names: dict[bytes, str]) -> Result[Any]:
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return Result()
        known = group.state_topics
        # Topics that were deleted meanwhile are not initializing any more.
        awaited = [p for p in codes if p[1] in known.numbers_initializing(p[0])]
        done = [place for place in awaited if codes[place] == ErrorCode.NONE]
        failed = [place for place in awaited if codes[place] != ErrorCode.NONE]
        if failed:
            found = sorted({codes[place] for place in failed})
            places = ", ".join(f"{names[topic_id]}-{number}" for topic_id, number in failed)
            _log.warning("share group %s: no state for %s (errors %s)", group_id, places, found)
        settled = known.settled(named_of(done, names), named_of(failed, names))
        if settled == known:
            return Result()
        return Result([member_records.state_topics(group_id, settled)])


def starts_of(begun: Named, known: StateTopics) -> dict[Place, int]:
    """Return the start offsets of partitions that a heartbeat has begun.

    Later partitions of a topic begin at 0: no record that came before their first fetch is lost.
    """
    return {
        (topic_id, number): FIRST_START if known.numbers_initialized(topic_id) else ANY_START
        for topic_id, (_, numbers) in begun.items()
        for number in sorted(numbers)
    }


def _codes_of(pending: Pending[dict[Place, int]], places: Iterable[Place]) -> Codes:
    """Return the error code of every place; a failed answer counts for all."""
    error = pending.error()
    if error is None:
        codes = pending.result()
        return {place: codes.get(place, ErrorCode.UNKNOWN_SERVER_ERROR) for place in places}
    code = getattr(error, "code", ErrorCode.UNKNOWN_SERVER_ERROR)
    return dict.fromkeys(places, code)


def _end(done: Pending[Codes], written: Pending[Any], codes: Codes) -> None:
    error = written.error()
    if isinstance(error, EmbedlogError):
        done.fail(error)
    else:
        done.complete(codes)
