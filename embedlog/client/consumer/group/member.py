"""`GroupMember`: the interface of a member, for both group protocols."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending

    class GroupMember(Protocol):
        """`ClassicMembership` or `ConsumerMembership`."""

        @property
        def is_joined(self) -> bool:
            """Whether this consumer is a member or is joining."""

        @property
        def is_waiting(self) -> bool:
            """Whether a heartbeat still waits for its answer."""

        @property
        def heartbeat_sent_ms(self) -> int | None:
            """Time of the last heartbeat; None before the first."""

        def polled(self, now_ms: int) -> None:
            """Start max.poll.interval.ms again, because the user polls."""

        def advance(self, now_ms: int) -> int | None:
            """Join and rebalance as needed. Requires: the user's thread.

            Returns milliseconds to the next useful pass, if known.

            Raises:
                KafkaError: the coordinator refused this member, and a retry cannot help.
                Exception: a rebalance listener raised it; the rebalance is over.
            """

        def keep_alive(self, now_ms: int) -> int | None:
            """Send a heartbeat if it is due; leave if the user has not polled for too long.

            Returns milliseconds to the next call, or None if the consumer is no member. Never
            raises.
            """

        def metadata(self) -> ConsumerGroupMetadata:
            """Return the member's identity."""

        def identity(self) -> ConsumerGroupMetadata:
            """Return the identity for a commit.

            Raises:
                CommitFailed: the consumer is no member.
                RebalanceInProgress: a rebalance is running; poll until it is over.
            """

        def commit_refused(self, error: KafkaError, sent_by: ConsumerGroupMetadata) -> Exception:
            """Return the exception for a refused commit that a retry cannot cure."""

        def subscription_changed(self) -> None:
            """React to a new subscription: the user subscribed to other topics."""

        def request_rejoin(self, reason: str) -> None:
            """Make the group rebalance."""

        def leave(self, reason: str) -> Pending[Any] | None:
            """Leave the group without calling the user; return the coordinator's answer, if any.

            A static member sends no request, or says that it will come back.
            """

        def depart(self, reason: str, operation: int) -> Pending[Any] | None:
            """Give up all partitions and leave the group; return the coordinator's answer, if any.

            `operation` is one of `CloseOptions`.
            """
