"""Public values of groups: committed offsets, a member's identity, and how to leave."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.common import item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from embedlog.common import TopicPartition

    GivenOffsets = (
        Mapping[TopicPartition, "OffsetAndMetadata | int"]
        | Mapping[tuple[str, int], "OffsetAndMetadata | int"]
    )


class OffsetAndMetadata(tuple[int, str, int]):
    """The next offset to read, the user's text, and the leader epoch of the last record read.

    With the epoch (-1 if unknown) a consumer detects that the log was truncated below the offset.

    >>> embedlog.OffsetAndMetadata(7, "batch 3")
    OffsetAndMetadata(7, 'batch 3')
    """

    __slots__ = ()

    def __new__(cls, offset: int, metadata: str = "", leader_epoch: int = -1) -> OffsetAndMetadata:
        if type(offset) is not int or offset < 0:
            offset = arguments.offset(offset, "OffsetAndMetadata")
        if type(metadata) is not str:
            arguments.name(metadata, "OffsetAndMetadata", "metadata", what="a text")
        if type(leader_epoch) is not int or leader_epoch < -1:
            leader_epoch = arguments.number(
                leader_epoch, "OffsetAndMetadata", "leader_epoch", "an epoch as int", lowest=-1
            )
        return tuple.__new__(cls, (offset, metadata, leader_epoch))

    def __getnewargs__(self) -> tuple[int, str, int]:
        return self[0], self[1], self[2]

    offset: Final[int] = item(0, "The next offset to read.")
    metadata: Final[str] = item(1, "The user's text.")
    leader_epoch: Final[int] = item(2, "Epoch of the last record read; -1 if unknown.")

    def __repr__(self) -> str:
        epoch = f", leader_epoch={self[2]}" if self[2] >= 0 else ""
        return f"OffsetAndMetadata({self[0]}, {self[1]!r}{epoch})"


def offsets_of(given: Any, call: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """Check the offsets (numbers or `OffsetAndMetadata`) that a user passed to `call`.

    Raises:
        TypeError, ValueError: a value is of another type, or an offset is negative.
    """
    what = "offset or OffsetAndMetadata"
    return {
        key: each
        if isinstance(each, OffsetAndMetadata)
        else OffsetAndMetadata(arguments.offset(each, call, f"offsets: {key}"))
        for key, each in arguments.by_partition(given, call, "offsets", what).items()
    }


class ConsumerGroupMetadata(tuple[str, int, str, str | None]):
    """A consumer's identity in its group; a transactional producer commits offsets with it.

    (group id, generation or member epoch, member id, group instance id)

    >>> embedlog.ConsumerGroupMetadata("readers").generation_id
    -1
    """

    __slots__ = ()

    def __new__(
        cls,
        group_id: str,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> ConsumerGroupMetadata:
        return tuple.__new__(cls, (group_id, generation_id, member_id, group_instance_id))

    def __getnewargs__(self) -> tuple[str, int, str, str | None]:
        return self[0], self[1], self[2], self[3]

    group_id: Final[str] = item(0, "The group.")
    generation_id: Final[int] = item(1, "Generation or member epoch; -1 outside.")
    member_id: Final[str] = item(2, "The member's id; empty outside the group.")
    group_instance_id: Final[str | None] = item(3, "The name of a static member.")

    def __repr__(self) -> str:
        return (
            f"ConsumerGroupMetadata({self[0]!r}, generation {self[1]}, member {self[2]!r}, "
            f"instance {self[3]!r})"
        )


class CloseOptions:
    """What happens to the membership of a consumer when it is closed.

    >>> embedlog.CloseOptions.REMAIN_IN_GROUP
    2
    """

    DEFAULT = 0
    """Leave the group, except that a static member stays until its session ends."""
    LEAVE_GROUP = 1
    REMAIN_IN_GROUP = 2
    """Send nothing: the partitions stay reserved until the session ends."""
