"""A member of either protocol and the group around it, as they see each other: types alone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from embedlog.client.consumer.group.auto_commit import AutoCommit
    from embedlog.client.consumer.group.coordinator_lookup import CoordinatorLookup
    from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata
    from embedlog.client.consumer.group.listener_calls import ListenerCalls
    from embedlog.client.consumer.group.membership_duty import MembershipDuty
    from embedlog.client.consumer.group.offset_commits import Membership, OffsetCommits
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.runtime.pending import Pending

    class GroupMember(Membership, Protocol):
        """A member of either protocol."""

        @property
        def is_joined(self) -> bool: ...

        @property
        def is_waiting(self) -> bool: ...

        @property
        def heartbeat_sent_ms(self) -> int | None: ...

        def polled(self, now_ms: int) -> None:
            """The user polls."""

        def advance(self, now_ms: int) -> int | None:
            """Go on with whatever rebalances; in the user's thread."""

        def keep_alive(self, now_ms: int) -> int | None:
            """Do what keeps it a member; None when it is none."""

        def metadata(self) -> ConsumerGroupMetadata:
            """Who it is to the group."""

        def subscription_changed(self) -> None:
            """Other topics are asked for."""

        def request_rejoin(self, reason: str) -> None:
            """Have the group rebalance."""

        def depart(self, reason: str, operation: int) -> Pending[Any] | None:
            """Leave; the answer, if the coordinator is told: `CloseOptions`."""

    class Group(Protocol):
        """`ConsumerCoordinator`, as far as its member needs it."""

        group_id: str
        calls: ListenerCalls
        lookup: CoordinatorLookup
        commits: OffsetCommits
        auto_commit: AutoCommit
        duty: MembershipDuty
        member: GroupMember

        @property
        def parts(self) -> ConsumerParts:
            """What the consumer's parts share."""
