"""`ClassicIdentity`: the ids and the generation of a member of a classic group."""

from __future__ import annotations

from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.schemas.join_group import JoinGroupResponse

NO_GENERATION = -1


class ClassicIdentity:
    """Member id and generation, set by the coordinator; group and instance id, set by the user."""

    def __init__(self, group_id: str, group_instance_id: str | None) -> None:
        self.group_id = group_id
        self.group_instance_id = group_instance_id
        self.generation_id = NO_GENERATION
        self.member_id = ""
        self.protocol: str | None = None
        """Name of the assignor that the members agreed on."""

    @property
    def is_member(self) -> bool:
        """Whether the coordinator accepted this member and has not reported that it removed it."""
        return self.generation_id != NO_GENERATION and bool(self.member_id)

    def accept(self, answer: JoinGroupResponse) -> None:
        self.generation_id = answer.generation_id
        self.member_id = answer.member_id
        self.protocol = answer.protocol_name

    def forget(self, *, keep_id: bool) -> None:
        self.generation_id = NO_GENERATION
        self.protocol = None
        if not keep_id:
            self.member_id = ""

    def metadata(self) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(
            self.group_id, self.generation_id, self.member_id, self.group_instance_id
        )

    def has_sent(self, sent_by: ConsumerGroupMetadata) -> bool:
        return (sent_by.generation_id, sent_by.member_id) == (self.generation_id, self.member_id)
