"""A member of a classic group, and the two requests it may have parked."""

from __future__ import annotations

from embedlog.runtime.pending import Pending
from wire.schemas.describe_groups import DescribedGroupMember
from wire.schemas.join_group import JoinGroupResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from embedlog.coordinator.group.classic.delayed_heartbeat import DelayedHeartbeat
    from wire.schemas.join_group import JoinGroupRequestProtocol
    from wire.schemas.sync_group import SyncGroupResponse

    Protocols = tuple[tuple[str, bytes], ...]

    ParkedSync = Pending[SyncGroupResponse]


class ParkedJoin(Pending[JoinGroupResponse]):
    """A JoinGroup that waits for the generation to be complete."""

    __slots__ = ("version",)

    def __init__(self, version: int) -> None:
        super().__init__()
        self.version = version
        """Of the request; refusals look different before version 7."""


class ClassicMember:
    """One member. Changed by its group only, but for `session`. Requires: the shard's lock."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "member_id",
        "parked_join",
        "parked_sync",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        """The id of a static member (KIP-345), None for a dynamic one."""
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        """(name, metadata) in the member's order of preference."""
        self.assignment = assignment
        self.is_new = False
        """Has it not been in any generation? Then its session ends though its join is parked."""
        self.parked_join: ParkedJoin | None = None
        self.parked_sync: ParkedSync | None = None
        self.session: DelayedHeartbeat | None = None

    @property
    def is_parked(self) -> bool:
        """Does it wait for an answer? Then it cannot send heartbeats, and need not."""
        return self.parked_join is not None or self.parked_sync is not None

    def metadata(self, protocol_name: str) -> bytes:
        """What the member says under that protocol's name.

        Raises:
            KeyError: it does not know the protocol.
        """
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise KeyError(f"member {self.member_id!r} does not know protocol {protocol_name!r}")

    def vote(self, candidates: Container[str]) -> str:
        """The first of its protocols that is a candidate."""
        return next(name for name, _ in self.protocols if name in candidates)

    def keep_alive(self) -> None:
        """It showed itself: its session counts from now."""
        if self.session is not None:
            self.session.keep_alive(self.session_timeout_ms)

    def described(self, protocol_name: str | None) -> DescribedGroupMember:
        """For DescribeGroups; the metadata is that for a stable group's protocol, else empty."""
        return DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol_name is None else self.metadata(protocol_name),
            member_assignment=self.assignment,
        )

    def __repr__(self) -> str:
        return f"ClassicMember({self.member_id!r}, instance_id={self.instance_id!r})"


def protocols_of(requested: list[JoinGroupRequestProtocol]) -> Protocols:
    """A request's protocols as a member keeps them: comparable, and its own."""
    return tuple([(protocol.name, bytes(protocol.metadata)) for protocol in requested])
