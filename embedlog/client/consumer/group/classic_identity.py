"""Who a member of a classic group is to its coordinator."""

from __future__ import annotations

from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.schemas.join_group import JoinGroupResponse

NO_GENERATION = -1


class ClassicIdentity:
    """The names that the coordinator has given, and the generation that they hold in.

    The user names the group and, for a static member, the instance.
    """

    __slots__ = ("generation_id", "group_id", "group_instance_id", "member_id", "protocol")

    def __init__(self, group_id: str, group_instance_id: str | None) -> None:
        self.group_id = group_id
        self.group_instance_id = group_instance_id
        self.generation_id = NO_GENERATION
        self.member_id = ""
        self.protocol: str | None = None
        """The assignor that the members have agreed on."""

    @property
    def is_member(self) -> bool:
        """Has it been one, and was not told that it is one no more?"""
        return self.generation_id != NO_GENERATION and bool(self.member_id)

    def accept(self, answer: JoinGroupResponse) -> None:
        """The coordinator has let it in."""
        self.generation_id = answer.generation_id
        self.member_id = answer.member_id
        self.protocol = answer.protocol_name

    def forget(self, *, keep_id: bool) -> None:
        """It is a member no more; with `keep_id` it comes back under its name."""
        self.generation_id = NO_GENERATION
        self.protocol = None
        if not keep_id:
            self.member_id = ""

    def metadata(self) -> ConsumerGroupMetadata:
        """What it shows with its commits."""
        return ConsumerGroupMetadata(
            self.group_id, self.generation_id, self.member_id, self.group_instance_id
        )

    def has_sent(self, sent_by: ConsumerGroupMetadata) -> bool:
        """Was it this member, in this generation?"""
        return (sent_by.generation_id, sent_by.member_id) == (self.generation_id, self.member_id)
