"""`Group`: the base class of the groups of all protocols.

    classic/     ClassicGroup   members elect a leader, which assigns (JoinGroup, SyncGroup)
    consumer/    ConsumerGroup  the coordinator assigns (KIP-848)
    share/       ShareGroup     the coordinator assigns, members share partitions (KIP-932)
    streams/     StreamsGroup   the coordinator assigns the tasks of an application (KIP-1071)

The code for offsets asks a group whether a commit is allowed, whether the group may be deleted, and
which stored offsets are in use. Listing and describing ask for names. No method changes a group,
except that an accepted commit keeps its member alive.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from embedlog.common import IN_PROCESS_HOST, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.coordinator.result import CoordinatorRecord

    ExpiryBase = Callable[[int], int]
    """Commit time of an offset -> the time from which its retention counts; wall milliseconds."""

_IN_PROCESS = f"/{IN_PROCESS_HOST}"


def is_in_process(client_host: str) -> bool:
    """Return whether the `client_host` of a record is a client in the coordinator's process."""
    return client_host == _IN_PROCESS


class ClientIdentity(Value):
    """A member's client as the member's record stores it."""

    client_id: str
    client_host: str
    """With a leading slash, as Java prints an address."""

    @classmethod
    def of(cls, client_id: str | None, client_host: str) -> ClientIdentity:
        return cls(client_id or "", f"/{client_host}")


class Group(ABC):
    """One group. Requires for every method: the lock of the shard that holds it."""

    GROUP_TYPE: str
    """The type in ListGroups: "classic", "consumer", "share" or "streams"."""

    expires = True
    """Whether the group is deleted once it has neither members nor offsets."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id

    @property
    @abstractmethod
    def protocol_type(self) -> str:
        """The members' protocol type: "consumer", "connect", ...; "" if no member has named one."""

    @abstractmethod
    def state_name(self) -> str:
        """Return the state as ListGroups and DescribeGroups spell it: "Stable", "Empty", ..."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether the group has no members."""

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
        """Check that a member may commit offsets. For no member pass "", None and -1.

        `partitions` are the committed ones, as (topic id, number).

        Raises:
            KafkaError: the answer to the client.
        """

    def offset_commit_accepted(self, member_id: str) -> None:  # noqa: B027 - optional hook
        """Take an accepted commit as a sign of life; `member_id` may be "" or unknown."""

    @abstractmethod
    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise the client's error unless the member may fetch. None and -1 stand for no member."""

    @abstractmethod
    def validate_offset_delete(self) -> None:
        """Check that offsets of topics without subscribers may be deleted.

        Raises:
            NonEmptyGroup: the coordinator cannot tell which offsets the members use.
            GroupIdNotFound: the group is dead.
        """

    @abstractmethod
    def validate_delete(self) -> None:
        """Check that the whole group may be deleted.

        Raises:
            NonEmptyGroup: the group has members.
            GroupIdNotFound: the group is dead.
        """

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member may read that topic. If so, the topic's offsets do not expire."""

    @abstractmethod
    def offset_expiry_base(self) -> ExpiryBase | None:
        """Return the function from an offset's commit time to the start of its retention.

        None: no offset expires now. Offsets of subscribed topics never expire. An offset with its
        own expiry time does not expire before it.
        """

    @abstractmethod
    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete all stored data of the group except its offsets."""
