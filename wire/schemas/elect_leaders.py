"""ElectLeaders (API key 43), versions 0-2, flexible from 2: elect preferred or unclean leaders.

v1 election type, an error for the whole answer. If `topic_partitions` is null, all partitions
elect leaders.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, int8, int16, int32, message, string, struct


@struct
class TopicPartitions:
    topic: str = string()
    partitions: list[int] = array(int32)


@message(api=ApiKey.ELECT_LEADERS, kind="request", versions="0-2", flexible="2+")
class ElectLeadersRequest(Request["ElectLeadersResponse"]):
    election_type: int = int8("1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+")
    timeout_ms: int = int32(default=60000)


@struct
class PartitionResult:
    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@struct
class ReplicaElectionResult:
    topic: str = string()
    partition_result: list[PartitionResult] = array(PartitionResult)


@message(api=ApiKey.ELECT_LEADERS, kind="response", versions="0-2", flexible="2+")
class ElectLeadersResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16("1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
