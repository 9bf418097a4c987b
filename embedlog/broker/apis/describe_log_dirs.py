"""DescribeLogDirs (api key 35), versions 0-5: where replicas lie and how large they are.

There is one directory. Null topics ask for all; unknown ones are left out. v2 flexible. v3 an
error for the whole answer. v4 room on the volume (-1 for a log in memory). v5 cordoned.
"""

from __future__ import annotations

from wire.schemas.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from wire.schemas.describe_log_dirs import DescribeLogDirsRequest


def handle(
    broker: Broker, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    asked = request.topics
    wanted = (
        None
        if asked is None
        else {(topic.topic, index) for topic in asked for index in topic.partitions}
    )
    sizes: dict[tuple[str, int], int] = {
        partition.topic_partition: partition.log.size for partition in broker.all_partitions()
    }
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for topic in broker.image.topics_by_name.values():
        for partition in topic.partitions:
            place = topic.name, partition.partition
            if broker.node_id in partition.replicas and (wanted is None or place in wanted):
                # A coordinator's partition has no log before it is used, and takes no room.
                described = _describe(partition.partition, sizes.get(place, 0))
                by_topic.setdefault(topic.name, []).append(described)
    directory = broker.log_manager.directory.path
    volume = broker.runtime.files.volume(directory)
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                log_dir=directory,
                topics=[
                    DescribeLogDirsTopic(name=name, partitions=partitions)
                    for name, partitions in by_topic.items()
                ],
                total_bytes=volume.size,
                usable_bytes=volume.usable,
            )
        ]
    )


def _describe(index: int, size: int) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(partition_index=index, partition_size=size, offset_lag=0)
