"""A member of a classic group, and the two requests that it may have parked."""

from __future__ import annotations

from embedlog.runtime.pending import Pending
from wire.schemas.describe_groups import DescribedGroupMember
from wire.schemas.join_group import JoinGroupRequestProtocol, JoinGroupResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from embedlog.coordinator.group.classic.group_operation import DelayedHeartbeat
    from wire.schemas.sync_group import SyncGroupResponse

    Protocols = tuple[tuple[str, bytes], ...]

    ParkedSync = Pending[SyncGroupResponse]


_FIRST_WITH_NULL_PROTOCOL = 7


class ParkedJoin(Pending[JoinGroupResponse]):
    """A JoinGroup that waits until the generation is complete."""

    __slots__ = ("version",)

    def __init__(self, version: int) -> None:
        super().__init__()
        self.version = version
        """The JoinGroup version, which decides the form of a refusal (see `join_refused`)."""


class ClassicMember:
    """One member. Only its group changes it, except `session`. Requires: the shard's lock."""

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
        """A static member's instance id (KIP-345), None for a dynamic member."""
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        """(name, metadata) in the member's order of preference."""
        self.assignment = assignment
        self.is_new = False
        """True until the member is in a generation. The session of a new member may end while its
        join is parked."""
        self.parked_join: ParkedJoin | None = None
        self.parked_sync: ParkedSync | None = None
        self.session: DelayedHeartbeat | None = None

    @property
    def is_parked(self) -> bool:
        """Return whether a request of the member is parked.

        Until the answer comes the member cannot send heartbeats, and need not.
        """
        return self.parked_join is not None or self.parked_sync is not None

    def metadata(self, protocol_name: str) -> bytes:
        """Return the member's metadata for a protocol, which the member must know."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise KeyError(f"member {self.member_id!r} does not know protocol {protocol_name!r}")

    def vote(self, candidates: Container[str]) -> str:
        """Return the first of the member's protocols that is a candidate."""
        return next(name for name, _ in self.protocols if name in candidates)

    def keep_alive(self) -> None:
        """Restart the session time-out, after a sign of life from the member."""
        if self.session is not None:
            self.session.keep_alive(self.session_timeout_ms)

    def described(self, protocol_name: str | None) -> DescribedGroupMember:
        """Describe the member; the metadata is empty unless the group is stable."""
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


def join_refused(version: int, code: int, member_id: str = "") -> JoinGroupResponse:
    """Return a JoinGroup error.

    `member_id` is the request's, or "" for the errors with which Kafka returns no member id.
    """
    return JoinGroupResponse(
        error_code=code,
        protocol_name=None if version >= _FIRST_WITH_NULL_PROTOCOL else "",
        member_id=member_id,
    )


def protocols_of(requested: list[JoinGroupRequestProtocol]) -> Protocols:
    """Return a request's protocols in comparable form, with their bytes copied."""
    return tuple([(protocol.name, bytes(protocol.metadata)) for protocol in requested])
