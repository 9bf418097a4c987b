"""AlterReplicaLogDirs (api key 34), versions 0-2: move replicas between a broker's directories.

The answer comes when the moves have begun. A request that names the present directory of a replica
cancels its move. For a repeated partition the last directory counts. If a replica does not exist
yet, the answer has an error, but the directory is remembered for it. No replica moves while a
directory is offline. A topic is refused if its name leaves no room for the suffix that Kafka adds
for a moving replica. v2 flexible.
"""

from __future__ import annotations

from collections.abc import Callable

from embedlog import errors
from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from embedlog.common import TopicPartition
from embedlog.errors import KafkaError
from wire.error_codes import ErrorCode
from wire.schemas.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

_NAME_SIZE_MAX = 255 - len(".-future") - 32
"""Limit of "topic-partition". The name of a directory has at most 255 bytes, and Kafka appends 40
while a replica moves: a dot, 32 digits and "-future"."""


def handle(
    broker: Broker, _context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    return _answer(request, lambda path, topic, index: _move(broker, path, topic, index))


def refused(
    request: AlterReplicaLogDirsRequest, _version: int, error: KafkaError
) -> AlterReplicaLogDirsResponse:
    """Return the error in every partition."""
    return _answer(request, lambda _path, _topic, _index: error.code)


def _answer(
    request: AlterReplicaLogDirsRequest, move: Callable[[str, str, int], int]
) -> AlterReplicaLogDirsResponse:
    wanted = {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (topic, index), path in wanted.items():
        results.setdefault(topic, []).append(
            AlterReplicaLogDirPartitionResult(
                partition_index=index, error_code=move(path, topic, index)
            )
        )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=partitions)
            for topic, partitions in results.items()
        ]
    )


def _move(broker: Broker, path: str, topic: str, index: int) -> int:
    if len(f"{topic}-{index}") > _NAME_SIZE_MAX:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    manager, place = broker.log_manager, TopicPartition(topic, index)
    if path not in (each.directory.path for each in manager.managers):
        is_offline = path in (each.path for each in manager.offline)
        return ErrorCode.KAFKA_STORAGE_ERROR if is_offline else ErrorCode.LOG_DIR_NOT_FOUND
    if manager.is_cordoned(path):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if manager.relocations is not None:
        manager.relocations.cancel(place, unless_to=path)
    holder = manager.holder(place)
    if holder is None and manager.preferred is not None:
        manager.preferred.note(place, path)
    known = broker.image.partition(topic, index)
    if known is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker.node_id not in known.replicas:
        return ErrorCode.REPLICA_NOT_AVAILABLE
    if holder is not None and holder.directory.path == path:
        return ErrorCode.NONE
    if manager.offline:
        return _error_of(broker, place)
    if holder is not None and manager.relocations is not None:
        manager.relocations.start(place, path)
    return ErrorCode.NONE


def _error_of(broker: Broker, place: TopicPartition) -> int:
    """Return the error for a replica that cannot move while a directory is offline."""
    try:
        broker.replica_manager.partition(*place)
    except errors.NotLeaderOrFollower:
        return ErrorCode.REPLICA_NOT_AVAILABLE  # this replica was lost, and another broker leads
    except errors.KafkaStorageError:
        pass
    return ErrorCode.KAFKA_STORAGE_ERROR
