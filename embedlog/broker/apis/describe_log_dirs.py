"""DescribeLogDirs (api key 35), versions 0-5: where replicas lie and how large they are.

There is one directory. Null topics ask for all; unknown ones are left out. v2 flexible. v3 an
error for the whole answer. v4 room on the volume, which is unknown here (-1). v5 cordoned.
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
    from embedlog.replication.partition import Partition
    from wire.schemas.describe_log_dirs import DescribeLogDirsRequest

VERSIONS = (0, 5)


def handle(
    broker: Broker, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    asked = request.topics
    wanted = (
        None
        if asked is None
        else {(topic.topic, index) for topic in asked for index in topic.partitions}
    )
    by_topic: dict[str, list[Partition]] = {}
    for partition in broker.all_partitions():
        if wanted is None or partition.topic_partition in wanted:
            by_topic.setdefault(partition.topic, []).append(partition)
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                log_dir=broker.log_directory,
                topics=[
                    DescribeLogDirsTopic(
                        name=topic, partitions=[_describe(partition) for partition in partitions]
                    )
                    for topic, partitions in by_topic.items()
                ],
            )
        ]
    )


def _describe(partition: Partition) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=partition.index, partition_size=partition.log.size, offset_lag=0
    )
