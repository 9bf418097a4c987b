"""The partitions behind the endpoints of members, for queries of the application's states."""

from __future__ import annotations

from wire.schemas.streams_group_heartbeat import Endpoint, EndpointToPartitions, TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.streams.configured_topology import ConfiguredTopology
    from embedlog.coordinator.group.streams.member import StreamsMember
    from embedlog.coordinator.group.streams.tasks import Numbers


def partitions_by_endpoint(
    members: Iterable[StreamsMember], configured: ConfiguredTopology, metadata: MetadataImage
) -> list[EndpointToPartitions]:
    """Return the input partitions of the tasks of each member that has an endpoint."""
    found = []
    for member in members:
        if member.endpoint is not None:
            assigned = member.assigned
            host, port = member.endpoint
            found.append(
                EndpointToPartitions(
                    user_endpoint=Endpoint(host=host, port=port),
                    active_partitions=_inputs(assigned.active_numbers(), configured, metadata),
                    standby_partitions=[
                        *_inputs(assigned.standby, configured, metadata),
                        *_inputs(assigned.warmup, configured, metadata),
                    ],
                )
            )
    return found


def _inputs(
    tasks: Numbers, configured: ConfiguredTopology, metadata: MetadataImage
) -> list[TopicPartition]:
    found = []
    for name, numbers in sorted(tasks.items()):
        part = (configured.subtopologies or {}).get(name)
        for topic in () if part is None else part.inputs():
            image = metadata.topics_by_name.get(topic)
            count = 0 if image is None else len(image.partitions)
            known = sorted(number for number in numbers if number < count)
            if known:
                found.append(TopicPartition(topic=topic, partitions=known))
    return found
