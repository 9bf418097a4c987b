"""DescribeLogDirs (api key 35), versions 0-5: the log directories, their replicas and sizes.

An offline directory has KAFKA_STORAGE_ERROR. Null topics mean all; unknown topics are left out. A
moving replica appears twice: its copy has is_future_key, and its offset_lag is the number of
offsets that the copy lacks. v2 flexible. v3 a top-level error. v4 size and free space of the
volume, -1 for a log in memory. v5 whether the directory is cordoned.
"""

from __future__ import annotations

from embedlog.common import TopicPartition
from wire.error_codes import ErrorCode
from wire.schemas.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.files import Files
    from wire.schemas.describe_log_dirs import DescribeLogDirsRequest

    _Topics = dict[str, list[DescribeLogDirsPartition]]


def handle(
    broker: Broker, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    asked = request.topics
    wanted = (
        None
        if asked is None
        else {(topic.topic, index) for topic in asked for index in topic.partitions}
    )
    managers = broker.log_manager.managers
    sizes = _sizes(broker, [each.directory.path for each in managers])
    found: dict[str, _Topics] = {path: {} for path in sizes}
    first = managers[0].directory.path
    relocations = broker.log_manager.relocations
    futures = {} if relocations is None else relocations.futures()
    for topic in broker.image.topics_by_name.values():
        for partition in topic.partitions:
            place = topic.name, partition.partition
            if broker.node_id not in partition.replicas or (
                wanted is not None and place not in wanted
            ):
                continue
            path = next((path for path, here in sizes.items() if place in here), None)
            if path is None:
                if broker.image.is_lost(partition, broker.node_id):
                    continue
                # A coordinator's partition has no log before its first use: list it with size 0.
                path = first
            described = _describe(partition.partition, sizes[path].get(place, 0))
            found[path].setdefault(topic.name, []).append(described)
            future = futures.get(TopicPartition(*place))
            if future is not None and future.directory in found:
                described = _describe(partition.partition, future.size)
                described.is_future_key = True
                described.offset_lag = max(0, future.log.log_end_offset - future.end_offset)
                found[future.directory].setdefault(topic.name, []).append(described)
    results = [
        _result(broker, path, each.directory.files, found[path])
        for path, each in zip(sizes, managers, strict=True)
    ]
    named = broker.config.log_dirs or ()
    results += [
        DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=gone.path)
        for gone in broker.log_manager.offline
        if gone.path in named and gone.path not in sizes  # a new directory may have its path now
    ]
    return DescribeLogDirsResponse(results=results)


def _sizes(broker: Broker, paths: Sequence[str]) -> dict[str, dict[tuple[str, int], int]]:
    """Return the sizes of the logs of each online directory, by its path."""
    found: dict[str, dict[tuple[str, int], int]] = {path: {} for path in paths}
    for partition in broker.all_partitions():
        here = found.get(partition.log.directory.rpartition("/")[0])
        if here is not None:
            here[partition.topic_partition] = partition.log.size
    return found


def _result(broker: Broker, path: str, files: Files, topics: _Topics) -> DescribeLogDirsResult:
    try:
        volume = files.volume(path)
    except OSError:  # the disk of the directory has just failed
        return DescribeLogDirsResult(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, log_dir=path)
    return DescribeLogDirsResult(
        log_dir=path,
        topics=[
            DescribeLogDirsTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
        total_bytes=volume.size,
        usable_bytes=volume.usable,
        is_cordoned=broker.log_manager.is_cordoned(path),
    )


def _describe(index: int, size: int) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(partition_index=index, partition_size=size, offset_lag=0)
