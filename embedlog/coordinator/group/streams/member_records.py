"""A streams group's state as records of `__consumer_offsets`, types 17-23.

17  group            group epoch, metadata hash; epoch of the validated topology, settings of the
                     last assignment, epochs of stored and failed descriptions
19  group, member    client and settings of the member
20  group            target assignment epoch, time of the assignment
21  group, member    target assignment
22  group, member    member epochs, state, tasks; the active ones with their assignment epochs
23  group            topology: see `topology_records`
"""

from __future__ import annotations

from embedlog.coordinator.group.streams import member as states
from embedlog.coordinator.group.streams import topology_records
from embedlog.coordinator.group.streams.facts import Facts
from embedlog.coordinator.group.streams.member import StreamsMember
from embedlog.coordinator.group.streams.tasks import HeldTasks, Numbers, Tasks, numbers_of
from embedlog.coordinator.result import CoordinatorRecord
from wire.schemas import streams_group_metadata as schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.coordinator.group.streams.tasks import Epochs


def group_facts(group_id: str, facts: Facts) -> CoordinatorRecord:
    """Return the record of type 17."""
    return CoordinatorRecord(
        schema.StreamsGroupMetadataKey(group_id=group_id),
        schema.StreamsGroupMetadataValue(
            epoch=facts.epoch,
            metadata_hash=facts.metadata_hash,
            validated_topology_epoch=facts.validated_topology_epoch,
            last_assignment_configs=[
                schema.LastAssignmentConfig(key=key, value=value)
                for key, value in facts.assignment_configs
            ],
            stored_description_topology_epoch=facts.stored_description_epoch,
            failed_description_topology_epoch=facts.failed_description_epoch,
        ),
    )


def read_facts(value: schema.StreamsGroupMetadataValue) -> Facts:
    """Return the content of a record of type 17."""
    configs = value.last_assignment_configs or []
    return Facts(
        value.epoch,
        value.metadata_hash,
        value.validated_topology_epoch,
        tuple(sorted((config.key, config.value) for config in configs)),
        value.stored_description_topology_epoch,
        value.failed_description_topology_epoch,
    )


def member_metadata(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """Return the record of type 19: one member's client and settings."""
    endpoint = None
    if member.endpoint is not None:
        endpoint = schema.Endpoint(host=member.endpoint[0], port=member.endpoint[1])
    return CoordinatorRecord(
        schema.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        schema.StreamsGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topology_epoch=member.topology_epoch,
            process_id=member.process_id,
            user_endpoint=endpoint,
            client_tags=[
                schema.KeyValue(key=key, value=value)
                for key, value in sorted(member.client_tags.items())
            ],
        ),
    )


def with_metadata(
    member: StreamsMember, value: schema.StreamsGroupMemberMetadataValue
) -> StreamsMember:
    """Return `member` with the metadata of a record of type 19."""
    endpoint = value.user_endpoint
    return member.replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        client_tags={tag.key: tag.value for tag in value.client_tags},
    )


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Return the record of type 20. Timestamp 0 allows the next assignment at once."""
    return CoordinatorRecord(
        schema.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id),
        schema.StreamsGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=timestamp_ms
        ),
    )


def target_assignment(group_id: str, member_id: str, target: Tasks) -> CoordinatorRecord:
    """Return the record of type 21: the target of one member."""
    return CoordinatorRecord(
        schema.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        schema.StreamsGroupTargetAssignmentMemberValue(
            active_tasks=_target_rows(target.active),
            standby_tasks=_target_rows(target.standby),
            warmup_tasks=_target_rows(target.warmup),
        ),
    )


def read_target(value: schema.StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    """Return the target of a record of type 21."""
    return Tasks(
        numbers_of(value.active_tasks),
        numbers_of(value.standby_tasks),
        numbers_of(value.warmup_tasks),
    )


def current_assignment(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """Return the record of type 22: one member's epochs and tasks."""
    assigned, revoking = member.assigned, member.revoking
    return CoordinatorRecord(
        schema.StreamsGroupCurrentMemberAssignmentKey(
            group_id=group_id, member_id=member.member_id
        ),
        schema.StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            active_tasks=_rows_with_epochs(assigned.active),
            standby_tasks=_rows(assigned.standby),
            warmup_tasks=_rows(assigned.warmup),
            active_tasks_pending_revocation=_rows_with_epochs(revoking.active),
            standby_tasks_pending_revocation=_rows(revoking.standby),
            warmup_tasks_pending_revocation=_rows(revoking.warmup),
        ),
    )


def with_assignment(
    member: StreamsMember, value: schema.StreamsGroupCurrentMemberAssignmentValue | None
) -> StreamsMember:
    """Return `member` with the assignment of a record of type 22; a tombstone resets it."""
    if value is None:
        value = schema.StreamsGroupCurrentMemberAssignmentValue(state=states.STABLE)
    epoch = value.member_epoch
    return member.replace(
        epoch=epoch,
        previous_epoch=value.previous_member_epoch,
        state=value.state if value.state in states.STATES else states.UNKNOWN,
        assigned=HeldTasks(
            _read_epochs(value.active_tasks, epoch),
            numbers_of(value.standby_tasks),
            numbers_of(value.warmup_tasks),
        ),
        revoking=HeldTasks(
            _read_epochs(value.active_tasks_pending_revocation, epoch),
            numbers_of(value.standby_tasks_pending_revocation),
            numbers_of(value.warmup_tasks_pending_revocation),
        ),
    )


def without_member(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the tombstones of one member: types 22, 21 and 19, in the order that replay needs."""
    keys = (
        schema.StreamsGroupCurrentMemberAssignmentKey,
        schema.StreamsGroupTargetAssignmentMemberKey,
        schema.StreamsGroupMemberMetadataKey,
    )
    return [CoordinatorRecord(key(group_id=group_id, member_id=member_id)) for key in keys]


def without_group(group_id: str, member_ids: list[str]) -> list[CoordinatorRecord]:
    """Return the tombstones of a whole group."""
    members = [without_member(group_id, member_id) for member_id in member_ids]
    return [
        *(current for current, _, _ in members),
        *(target for _, target, _ in members),
        CoordinatorRecord(schema.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(metadata for _, _, metadata in members),
        CoordinatorRecord(schema.StreamsGroupMetadataKey(group_id=group_id)),
        topology_records.without_topology(group_id),
    ]


def _target_rows(tasks: Numbers) -> list[schema.TargetTaskIds]:
    return [
        schema.TargetTaskIds(subtopology_id=name, partitions=sorted(numbers))
        for name, numbers in sorted(tasks.items())
    ]


def _rows(tasks: Numbers) -> list[schema.CurrentTaskIds]:
    return [
        schema.CurrentTaskIds(subtopology_id=name, partitions=sorted(numbers))
        for name, numbers in sorted(tasks.items())
    ]


def _rows_with_epochs(tasks: Epochs) -> list[schema.CurrentTaskIds]:
    rows = []
    for name, epochs in sorted(tasks.items()):
        numbers = sorted(epochs)
        rows.append(
            schema.CurrentTaskIds(
                subtopology_id=name,
                partitions=numbers,
                assignment_epochs=[epochs[number] for number in numbers],
            )
        )
    return rows


def _read_epochs(rows: Iterable[schema.CurrentTaskIds], member_epoch: int) -> Epochs:
    found: dict[str, dict[int, int]] = {}
    for row in rows:
        epochs = row.assignment_epochs
        if epochs is None:
            # Earlier versions wrote no assignment epochs: the present epoch is the safe assumption.
            epochs = [member_epoch] * len(row.partitions)
        found[row.subtopology_id] = dict(zip(row.partitions, epochs, strict=False))
    return found
