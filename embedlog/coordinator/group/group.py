"""`Group`: what the coordinator asks of a group, whichever protocol its members speak.

    classic/     ClassicGroup   members elect a leader, which assigns (JoinGroup, SyncGroup)
    consumer/    ConsumerGroup  the coordinator assigns (KIP-848)

The offsets' part asks whether a commit is allowed, whether a group may be deleted, and which
stored offsets are in use; listing and describing ask for names. Nothing here changes a group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from embedlog.common import IN_PROCESS_HOST
from embedlog.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.coordinator.result import CoordinatorRecord

    ExpiryBase = Callable[[int], int]
    """From the time of an offset's commit to the time from which its retention counts, both in
    wall milliseconds."""

_IN_PROCESS = f"/{IN_PROCESS_HOST}"


def is_in_process(client_host: str) -> bool:
    """Was the member, as its record names it, a client in the coordinator's own process?"""
    return client_host == _IN_PROCESS


class ClientIdentity(Value):
    """How a member's client introduces itself, as the member's record spells it."""

    client_id: str
    client_host: str
    """With a slash before it, as Java prints an address."""

    @classmethod
    def of(cls, client_id: str | None, client_host: str) -> ClientIdentity:
        """Return the identity of the client that sent a request."""
        return cls(client_id or "", f"/{client_host}")


class Group(ABC):
    """One group. Requires for every method: the lock of the shard that holds it."""

    __slots__ = ("group_id",)

    GROUP_TYPE: str
    """What ListGroups calls this kind of group: "classic" or "consumer"."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id

    @property
    @abstractmethod
    def protocol_type(self) -> str:
        """What the members use the group for: "consumer", "connect", ...; "" while nobody said."""

    @abstractmethod
    def state_name(self) -> str:
        """The state as ListGroups and DescribeGroups spell it: "Stable", "Empty", ..."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Has it no members?"""

    @abstractmethod
    def validate_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        api_version: int,
        partitions: Iterable[tuple[bytes, int]] = (),
    ) -> None:
        """May that member commit offsets now? A commit without member says "", None and -1.

        `partitions` are those it commits, as (topic id, number).

        Raises:
            KafkaError: what the client is to be answered.
        """

    def offset_commit_accepted(self, member_id: str) -> None:  # noqa: B027 - most need not know
        """A plain commit passed `validate_offset_commit`: a sign of life, where the protocol takes
        it for one. `member_id` may be "" or unknown.
        """

    @abstractmethod
    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """May that member ask for offsets? Others than members say None, and -1.

        Raises:
            KafkaError: what the client is to be answered.
        """

    @abstractmethod
    def validate_offset_delete(self) -> None:
        """May offsets be deleted, of topics that `is_subscribed_to` says no to?

        Raises:
            NonEmptyGroup: members use the group for what the coordinator cannot look into.
            GroupIdNotFound: the group is dead.
        """

    @abstractmethod
    def validate_delete(self) -> None:
        """May the whole group be deleted?

        Raises:
            NonEmptyGroup: it has members.
            GroupIdNotFound: it is dead.
        """

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Does a member read that topic, as far as is known? Its offsets stay."""

    @abstractmethod
    def offset_expiry_base(self) -> ExpiryBase | None:
        """Return how to find the time from which a stored offset's retention counts.

        None: no offset expires now, whatever its topic. Those of topics that `is_subscribed_to`
        says yes to never do, nor do those with an expiry time of their own before it has come.
        """

    @abstractmethod
    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that delete everything stored of the group but its offsets."""
