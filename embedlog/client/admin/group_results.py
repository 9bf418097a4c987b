"""What the admin client says about groups."""

from __future__ import annotations

from embedlog.client.admin.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.cluster_nodes import Node
    from embedlog.common import TopicPartition


class GroupListing(Value):
    """A group in brief.

    `state` and `group_type` ("classic", "consumer", ...) are empty when the broker is too old to
    tell (before 2.6 and 3.8).
    """

    __slots__ = ("group_id", "group_type", "protocol_type", "state")

    def __init__(self, group_id: str, protocol_type: str, state: str, group_type: str) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.state = state
        self.group_type = group_type


class MemberDescription(Value):
    """A member of a group.

    `assignment` is what it has, `target_assignment` what it shall have (None in a classic group,
    where it is the same). `member_epoch` is -1 in a classic group. `uses_consumer_protocol` is None
    when the broker does not say. `metadata` and `assignment_data` are what the members of a
    classic group exchange; they hold what `assignment` shows only if the group's protocol type is
    "consumer".
    """

    __slots__ = (
        "assignment",
        "assignment_data",
        "client_id",
        "host",
        "instance_id",
        "member_epoch",
        "member_id",
        "metadata",
        "rack",
        "subscribed_pattern",
        "subscribed_topics",
        "target_assignment",
        "uses_consumer_protocol",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        host: str,
        *,
        assignment: list[TopicPartition],
        target_assignment: list[TopicPartition] | None = None,
        rack: str | None = None,
        member_epoch: int = -1,
        subscribed_topics: list[str],
        subscribed_pattern: str | None = None,
        uses_consumer_protocol: bool | None = False,
        metadata: bytes = b"",
        assignment_data: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.host = host
        self.assignment = assignment
        self.target_assignment = target_assignment
        self.rack = rack
        self.member_epoch = member_epoch
        self.subscribed_topics = subscribed_topics
        self.subscribed_pattern = subscribed_pattern
        self.uses_consumer_protocol = uses_consumer_protocol
        self.metadata = metadata
        self.assignment_data = assignment_data


class GroupDescription(Value):
    """A group and its members.

    `group_type` is "classic" or "consumer". The epochs are -1 in a classic group.
    `authorized_operations` are numbers of Kafka's AclOperation, None unless asked for.
    """

    __slots__ = (
        "assignor",
        "authorized_operations",
        "coordinator",
        "group_epoch",
        "group_id",
        "group_type",
        "members",
        "protocol_type",
        "state",
        "target_assignment_epoch",
    )

    def __init__(
        self,
        group_id: str,
        group_type: str,
        state: str,
        *,
        protocol_type: str,
        assignor: str,
        coordinator: Node,
        members: list[MemberDescription],
        group_epoch: int = -1,
        target_assignment_epoch: int = -1,
        authorized_operations: frozenset[int] | None = None,
    ) -> None:
        self.group_id = group_id
        self.group_type = group_type
        self.state = state
        self.protocol_type = protocol_type
        self.assignor = assignor
        self.coordinator = coordinator
        self.members = members
        self.group_epoch = group_epoch
        self.target_assignment_epoch = target_assignment_epoch
        self.authorized_operations = authorized_operations
