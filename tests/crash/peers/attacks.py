"""Requests of a few kilobytes that grew to gigabytes, or to minutes of work."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable

from tests.crash.peers.victim import Victim
from wire.primitives import uvarint
from wire.records.crc32c import crc32c
from wire.records.encode.builder import build_batch
from wire.records.format import CHECKED_HEAD, FRAME_HEAD, LOG_OVERHEAD
from wire.records.varint import encode_varint
from wire.schemas.create_topics import CreatableTopic, CreateTopicsRequest
from wire.schemas.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from wire.schemas.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

_MIB = 1 << 20


def many_resources(victim: Victim) -> None:
    """40,000 resources: each was compared with all others."""
    resources = [
        AlterConfigsResource(resource_type=99, resource_name=format(n, "x"), configs=[])
        for n in range(40_000)
    ]
    victim.attack(IncrementalAlterConfigsRequest(resources=resources), 1)


def one_resource_again_and_again(victim: Victim) -> None:
    """The broker's settings, 2,000 times."""
    resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    victim.attack(
        DescribeConfigsRequest(
            resources=[resource] * 2_000, include_synonyms=True, include_documentation=True
        ),
        4,
    )


def one_group_again_and_again(victim: Victim) -> None:
    """A thousand offsets, 2,000 times."""
    peer = victim.connect()
    peer.ask(_creation(["many"], 1_000), 5)
    peer.ask(FindCoordinatorRequest(key="g", key_type=0), 2)
    partitions = [
        OffsetCommitRequestPartition(partition_index=n, committed_offset=1) for n in range(1_000)
    ]
    commit = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[OffsetCommitRequestTopic(name="many", partitions=partitions)],
    )
    peer.ask(commit, 8)
    group = OffsetFetchRequestGroup(group_id="g", topics=None)
    victim.attack(OffsetFetchRequest(groups=[group] * 2_000), 8, peer=peer)


def bomb(victim: Victim) -> None:
    """63 MiB of records with a header each in 128 KB, as often as one request may hold."""
    record = bytes([16, 0, 0, 0, 1, 1, 2, 0, 1])
    for count in (63 * _MIB // len(record), 104_000):
        victim.attack(_produce(gzipped(record * count, count)), 9)


def headers(victim: Victim) -> None:
    """Two records with half a million headers each, in 2 KB; as often as one request may hold."""
    for count in (500_000, 52_000):
        bodies = [
            bytes([0, 0, offset, 1, 1]) + encode_varint(count) + bytes([0, 1]) * count
            for offset in (0, 2)
        ]
        records = b"".join(encode_varint(len(each)) + each for each in bodies)
        victim.attack(_produce(gzipped(records, 2)), 9)


def announced_frames(victim: Victim) -> None:
    """Large frames that never arrive, which must leave memory for a small frame that does."""
    peers = [victim.connect() for _ in range(3)]
    for peer, size in zip(peers, (100 * _MIB, 27 * _MIB, 768 * 1024), strict=True):
        peer.sock.sendall(size.to_bytes(4, "big") + bytes(3) + b"\x09" + bytes(4))
    started = time.monotonic()
    victim.connect().ask(_produce(build_batch([b"x" * 900_000], timestamps=_now_ms())), 9)
    victim.longest_wait = max(victim.longest_wait, time.monotonic() - started)


def growing_session(victim: Victim) -> None:
    """A fetch session of 720,000 partitions that do not exist, then fetches of 60 bytes."""
    peer = victim.connect()

    def fetch(session: int, epoch: int, first: int, count: int) -> FetchRequest:
        partitions = [
            FetchPartition(partition=first + n, partition_max_bytes=1) for n in range(count)
        ]
        topics = [FetchTopic(topic="zz", partitions=partitions)] if count else []
        return FetchRequest(
            max_wait_ms=0, max_bytes=1_000, session_id=session, session_epoch=epoch, topics=topics
        )

    session = peer.ask(fetch(0, 0, 0, 9_000), 7).session_id
    assert session
    for turn in range(1, 20):
        victim.attack(fetch(session, turn, turn * 36_000, 36_000), 7, peer=peer)
    for turn in range(20, 23):
        victim.attack(fetch(session, turn, 0, 0), 7, peer=peer)


def many_sessions(victim: Victim) -> None:
    """The maximum number of sessions of the maximum size."""
    partitions = [FetchPartition(partition=n, partition_max_bytes=1) for n in range(10_000)]
    request = FetchRequest(
        max_wait_ms=0,
        max_bytes=1_000,
        session_epoch=0,
        topics=[FetchTopic(topic="zz", partitions=partitions)],
    )
    for _ in range(20):
        victim.attack(request, 7)


def colliding_names(victim: Victim) -> None:
    """Thousands of names with '_': each was compared with all existing ones."""
    for turn in range(2):
        creation = _creation([f"a_{turn}_{n}" for n in range(4_000 * turn + 1_000)], 1)
        creation.validate_only = turn > 0
        victim.attack(creation, 5)


def many_partitions(victim: Victim) -> None:
    """A Produce of partitions without records: far above the limit, and just below."""
    for count in (10 * _MIB // 6, 45_000):
        items = b"".join((n + 1).to_bytes(4, "big") + b"\0\0" for n in range(count))
        body = b"\0\0\1" + (30_000).to_bytes(4, "big") + b"\2\2t" + uvarint(count + 1) + items
        frame = b"\0\0\0\x09" + bytes(4) + b"\0\1x\0" + body + b"\0\0"
        peer = victim.connect()
        peer.sock.sendall(len(frame).to_bytes(4, "big") + frame)
        victim.probe_until_answered(peer)
        peer.skip_answer()


def many_joins(victim: Victim) -> None:
    """Member ids that are assigned and never used."""
    peer = victim.connect()
    peer.ask(FindCoordinatorRequest(key="g", key_type=0), 2)
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=1_800_000,
        rebalance_timeout_ms=1_800_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    for turn in range(20_000):
        peer.ask(request, 5)
        if turn % 100 == 0:
            victim.probe()


ATTACKS: dict[str, Callable[[Victim], None]] = {
    "40,000 resources": many_resources,
    "one resource 2,000 times": one_resource_again_and_again,
    "one group 2,000 times": one_group_again_and_again,
    "compressed records": bomb,
    "headers": headers,
    "announced frames": announced_frames,
    "a growing fetch session": growing_session,
    "many fetch sessions": many_sessions,
    "colliding names": colliding_names,
    "many partitions": many_partitions,
    "many joins": many_joins,
}


def _now_ms() -> int:
    return int(time.time() * 1_000)


def _creation(names: list[str], partitions: int) -> CreateTopicsRequest:
    topics = [
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=60_000)


def _produce(records: bytes) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=records)]
    return ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name="t", partition_data=data)]
    )


def gzipped(payload: bytes, count: int) -> bytes:
    """Return a gzipped batch with this header count and these bytes as records."""
    packed = gzip.compress(payload, 9)
    now_ms = _now_ms()
    head = CHECKED_HEAD.pack(1, count - 1, now_ms, now_ms, -1, -1, -1, count)
    size = FRAME_HEAD.size + len(head) + len(packed) - LOG_OVERHEAD
    return FRAME_HEAD.pack(0, size, -1, 2, crc32c(packed, crc32c(head))) + head + packed
