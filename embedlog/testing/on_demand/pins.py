"""`Pins`: assignments of groups that a test has pinned.

    group of KIP-848    the coordinator's assignor is replaced, see `ConsumerGroup.pinned`
    classic group       the assignment in the leader's SyncGroup is replaced

A stage looks at the requests of pinned groups, so that a pin outlives moves of the coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from embedlog.common import TopicPartition, grouped
from embedlog.coordinator.group.classic.classic_group import ClassicGroup
from embedlog.coordinator.group.classic.subscription import read
from embedlog.testing.inspection.brokers import quiet
from embedlog.testing.interception import Call, Proceed
from embedlog.testing.stage_list import StageList
from wire import encode
from wire.errors import MalformedMessage
from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from wire.schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from wire.schemas.consumer_protocol import TopicPartition as EncodedPartitions
from wire.schemas.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.coordinator.group.assignors.spec import Partitions
    from embedlog.coordinator.group.consumer.member import ConsumerMember
    from embedlog.coordinator.group.group_shard import GroupShard

_COOPERATIVE = "cooperative"
_VERSION_SIZE = 2
_PLAIN_VERSION = 0


class Pin:
    """The wanted partitions of the members of one group.

    Members are named by member id, instance id or client id. A member without a name gets nothing.
    """

    def __init__(self, wanted: Mapping[str, tuple[TopicPartition, ...]]) -> None:
        self.wanted = wanted

    def shares(
        self, members: Iterable[tuple[str, str | None, str]]
    ) -> dict[str, tuple[TopicPartition, ...]]:
        """Return the partitions of each member, given as (member id, instance id, client id).

        A name counts for one member: the first of several with the same client id.
        """
        unused = dict(self.wanted)
        shares = {}
        for member_id, instance_id, client_id in members:
            names = [each for each in (member_id, instance_id, client_id) if each in unused]
            shares[member_id] = unused.pop(names[0]) if names and names[0] is not None else ()
        return shares


class Pins:
    """The pins of one cluster. Every method may be called from any thread."""

    def __init__(self, stages: StageList) -> None:
        self._stages = stages
        self._pins: dict[str, Pin] = {}

    def put(self, group_id: str, pin: Pin | None, running: Iterable[Broker]) -> None:
        """Pin a group's assignment at the running brokers; None ends that."""
        had_any = bool(self._pins)
        if pin is None:
            self._pins.pop(group_id, None)
        else:
            self._pins[group_id] = pin
        for core in running:
            self._install(core, group_id)
        if bool(self._pins) != had_any:
            if had_any:
                self._stages.remove(self._stage)
            else:
                self._stages.add(self._stage)

    def _install(self, core: Broker, group_id: str) -> None:
        pin = self._pins.get(group_id)
        pinned = core.group_coordinator.pinned
        if pin is None:
            pinned.pop(group_id, None)
        else:
            pinned[group_id] = _Pinned(pin, core)

    def _stage(self, call: Call, proceed: Proceed) -> Any:
        request = call.request
        if type(request) is ConsumerGroupHeartbeatRequest and request.group_id in self._pins:
            if request.group_id not in call.broker.group_coordinator.pinned:  # it has restarted
                self._install(call.broker, request.group_id)
        elif type(request) is SyncGroupRequest and request.assignments:
            pin = self._pins.get(request.group_id)
            if pin is not None:
                call = Call(call.broker, call.context, _rewritten(call.broker, request, pin))
        return proceed(call)


class _Pinned:
    """A pin at one broker, in place of a server-side assignor."""

    def __init__(self, pin: Pin, core: Broker) -> None:
        self.pin = pin
        self.core = core

    def __call__(self, members: Mapping[str, ConsumerMember]) -> dict[str, Partitions]:
        shares = self.pin.shares(
            (each.member_id, each.instance_id, each.client_id) for each in members.values()
        )
        return {member_id: self._with_ids(share) for member_id, share in shares.items()}

    def _with_ids(self, share: Iterable[TopicPartition]) -> Partitions:
        topics = self.core.image.topics_by_name
        found: dict[bytes, set[int]] = {}
        for topic, number in _existing(self.core, share):
            found.setdefault(topics[topic].topic_id, set()).add(number)
        return found


def _existing(core: Broker, share: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return the partitions that exist: a topic may have been deleted since it was pinned."""
    return [place for place in share if core.image.partition(*place) is not None]


# Classic groups


def _rewritten(core: Broker, request: SyncGroupRequest, pin: Pin) -> SyncGroupRequest:
    """Return the leader's request with the pinned assignment."""
    members: list[tuple[str, str | None, str]] = []
    owned: dict[TopicPartition, str] = {}

    def look(shard: GroupShard) -> None:
        group = shard.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            return
        for each in group.members.by_id.values():
            members.append((each.member_id, each.instance_id, each.client_id))
            if _COOPERATIVE in (group.protocol_name or ""):
                metadata = each.metadata(group.protocol_name or "")
                owned.update(dict.fromkeys(_owned(metadata), each.member_id))

    with quiet():
        core.group_coordinator.read(request.group_id, look)
    if not members:
        return request
    given = {each.member_id: bytes(each.assignment) for each in request.assignments}
    assignments = []
    for member_id, share in pin.shares(members).items():
        # A cooperative member keeps reading during a rebalance. It gives up its partitions first,
        # and joins again: the next round gives them to their new owner.
        present = _existing(core, share)
        free = [place for place in present if owned.get(place, member_id) == member_id]
        assignments.append(
            SyncGroupRequestAssignment(
                member_id=member_id, assignment=_encoded(free, given.get(member_id, b""))
            )
        )
    return SyncGroupRequest(
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=assignments,
    )


def _owned(metadata: bytes) -> list[TopicPartition]:
    try:
        subscription = read(ConsumerProtocolSubscription, metadata)
    except MalformedMessage:
        return []
    return [
        TopicPartition(each.topic, number)
        for each in subscription.owned_partitions
        for number in each.partitions
    ]


def _encoded(share: Iterable[TopicPartition], given: bytes) -> bytes:
    """Return an encoded assignment, with the version and the user data of the leader's."""
    version, user_data = _PLAIN_VERSION, None
    try:
        user_data = read(ConsumerProtocolAssignment, given).user_data
        version = int.from_bytes(given[:_VERSION_SIZE], "big")
    except MalformedMessage:
        version = _PLAIN_VERSION  # the leader gave this member nothing
    by_topic = grouped(sorted(share), lambda place: place.topic)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            EncodedPartitions(topic=topic, partitions=[each.partition for each in places])
            for topic, places in by_topic.items()
        ],
        user_data=user_data,
    )
    last = min(version, 3)
    return last.to_bytes(_VERSION_SIZE, "big") + bytes(encode(assignment, last))
