"""Metadata (API key 3), versions 0-13, flexible from 9: brokers, topics, partitions and their
leaders.

v0 an empty list of topics means all topics. v1 null means all topics, an empty list none; racks and
the controller. v2 cluster id. v3 throttle time. v4 the request can forbid the creation of topics.
v5 offline replicas. v7 leader epochs. v8-v10 authorized operations of the cluster, v8+ of topics.
v10 topic ids. v12 topics can be requested by id. v13 an error for the whole answer.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, boolean, int16, int32, message, string, struct, uuid


@struct
class MetadataRequestTopic:
    topic_id: bytes = uuid("10+", ignorable=True)
    name: str | None = string(nullable="10+")


@message(api=ApiKey.METADATA, kind="request", versions="0-13", flexible="9+")
class MetadataRequest(Request["MetadataResponse"]):
    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10")
    include_topic_authorized_operations: bool = boolean("8+")


@struct
class MetadataResponseBroker:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string("1+", nullable="1+", default=None, ignorable=True)


@struct
class MetadataResponsePartition:
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32("7+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, "5+", ignorable=True)


@struct
class MetadataResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable="12+")
    topic_id: bytes = uuid("10+", ignorable=True)
    is_internal: bool = boolean("1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32("8+", default=-(2**31))


@message(api=ApiKey.METADATA, kind="response", versions="0-13", flexible="9+")
class MetadataResponse:
    throttle_time_ms: int = int32("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string("2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32("8-10", default=-(2**31))
    error_code: int = int16("13+", ignorable=True)
