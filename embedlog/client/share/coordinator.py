"""`ShareCoordinator`: the parts of a share consumer that concern its group."""

from __future__ import annotations

from embedlog.client.backoff import sooner
from embedlog.client.consumer.group.coordinator_lookup import CoordinatorLookup
from embedlog.client.consumer.group.membership_duty import MembershipDuty
from embedlog.client.share.membership import ShareMembership
from embedlog.errors import again

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.share.leaders import ShareLeaders
    from embedlog.client.share.parts import ShareParts
    from embedlog.runtime.pending import Pending

_ANSWER_DELAY_MS = 50
"""Over a network, the membership duty looks for answers this often between the user's calls."""


class ShareCoordinator:
    """The look-up of the coordinator, the membership, and the duty that keeps it alive."""

    def __init__(self, parts: ShareParts, leaders: ShareLeaders) -> None:
        self._parts = parts
        self._assignment = parts.assignment
        self._leaders = leaders
        self.lookup = CoordinatorLookup(parts, parts.settings["group.id"])
        self.member = ShareMembership(parts, self.lookup)
        self.duty = MembershipDuty(
            parts.transport, self.keep_alive, self.member.interval_ms, leave=self._abandon
        )
        self._answer_delay_ms: int = (
            parts.settings["retry.backoff.ms"] if parts.transport.in_process else _ANSWER_DELAY_MS
        )
        self._checked_answers = 0

    def poll(self, now_ms: int) -> int | None:
        """Make a full pass; return milliseconds to the next useful pass, if known.

        Raises:
            KafkaError: the coordinator refused the group or the member, a topic's name is invalid,
                or the user may not read the topic.
        """
        self.member.polled(now_ms)
        delay = self.keep(now_ms)
        self._check_topics()
        delay = sooner(delay, self.member.advance(now_ms))
        self.duty.beat_every(self.member.interval_ms)
        # Once more, because the member may have requested a look-up of the coordinator.
        return sooner(delay, self.lookup.advance(now_ms))

    def keep(self, now_ms: int) -> int | None:
        """Make a pass without joining. Returns a delay as `poll` does.

        Raises:
            KafkaError: the cluster refused to name the coordinator.
        """
        delay = self.lookup.advance(now_ms)
        error = self.lookup.take_error()
        if error is not None:
            raise error
        delay = sooner(delay, self.member.keep_alive(now_ms))
        return sooner(delay, self.lookup.advance(now_ms))

    def keep_alive(self, now_ms: int) -> int | None:
        """Make a pass of the membership duty, between the user's calls.

        Returns milliseconds to the next useful pass, or None if the consumer is no member.
        """
        delay = self.lookup.advance(now_ms)
        delay = sooner(delay, self._leaders.advance(now_ms, fetches=False))
        later = self.member.keep_alive(now_ms)
        if later is None:
            return None
        delay = sooner(delay, self.lookup.advance(now_ms))
        if self.member.is_waiting or self._leaders.is_acknowledging:
            later = min(later, self._answer_delay_ms)
        return sooner(delay, later)

    def depart(self) -> Pending[Any] | None:
        """Leave the group; return the answer if there will be one."""
        answer = self.member.depart()
        if self.duty.is_running:
            self.duty.stop()
        return answer

    def _abandon(self, _reason: str) -> Pending[Any] | None:
        self._leaders.close()
        return self.member.leave()

    def _check_topics(self) -> None:
        """Raise the error of a subscribed topic, once for each metadata answer with an error."""
        metadata = self._parts.metadata
        if not metadata.errors or metadata.answer_count == self._checked_answers:
            return
        self._checked_answers = metadata.answer_count
        for topic in self._assignment.topics:
            error = metadata.topic_error(topic)
            if error is not None:
                raise again(error)
