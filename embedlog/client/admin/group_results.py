"""The admin client's values about groups."""

from __future__ import annotations

from embedlog.client.admin.value import AdminValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.cluster_nodes import Node
    from embedlog.common import TopicPartition


class GroupListing(AdminValue):
    """A group in a listing.

    `state` is empty from brokers before 2.6, `group_type` ("classic", "consumer", ...) from brokers
    before 3.8.
    """

    group_id: str
    protocol_type: str
    state: str
    group_type: str


class MemberDescription(AdminValue):
    """A member of a group.

    `assignment` has the present partitions, `target_assignment` the intended ones (None in a
    classic group, where both are equal). `member_epoch` is -1 in a classic group.
    `uses_consumer_protocol` is None if the broker does not report it. `metadata` and
    `assignment_data` are the bytes that members of a classic group exchange; `assignment` is
    decoded from them if the group's protocol type is "consumer".
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[TopicPartition]
    subscribed_topics: list[str]
    target_assignment: list[TopicPartition] | None = None
    rack: str | None = None
    member_epoch: int = -1
    subscribed_pattern: str | None = None
    uses_consumer_protocol: bool | None = False
    metadata: bytes = b""
    assignment_data: bytes = b""


class GroupDescription(AdminValue):
    """A group and its members.

    `group_type` is "classic" or "consumer". The epochs are -1 in a classic group.
    `authorized_operations` are numbers of Kafka's AclOperation, None unless asked for.
    """

    group_id: str
    group_type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: Node
    members: list[MemberDescription]
    group_epoch: int = -1
    target_assignment_epoch: int = -1
    authorized_operations: frozenset[int] | None = None
