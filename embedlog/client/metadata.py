"""What a client knows of the cluster: nodes, topics, and who leads each partition.

Knowledge ages: it is asked for again after metadata.max.age.ms, when an error says that it is
wrong, and when a new topic is named. `advance` does that without waiting, whoever drives.
"""

from __future__ import annotations

from embedlog.errors import KafkaError, error_for
from embedlog.transport import ANY_NODE
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.client.settings import Settings
    from embedlog.pending import Pending
    from embedlog.transport import Transport
    from wire.schemas.metadata import (
        MetadataResponse,
        MetadataResponsePartition,
        MetadataResponseTopic,
    )

STALE_METADATA = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
)
"""Errors which say that the client knows the wrong leader or topic: ask, and try again."""

_SURFACED = frozenset(
    (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    )
)
"""Errors of a topic that asking again will not cure."""


class Node:
    """A broker: its id, where it listens, its rack."""

    __slots__ = ("host", "node_id", "port", "rack")

    def __init__(self, node_id: int, host: str, port: int, rack: str | None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack

    def __repr__(self) -> str:
        return f"Node({self.node_id}, {self.host!r}, {self.port})"


class PartitionInfo:
    """One partition as Metadata described it. `leader` is -1 while there is none."""

    __slots__ = ("isr", "leader", "leader_epoch", "offline_replicas", "partition", "replicas")

    def __init__(
        self,
        partition: int,
        leader: int,
        leader_epoch: int,
        *,
        replicas: tuple[int, ...] = (),
        isr: tuple[int, ...] = (),
        offline_replicas: tuple[int, ...] = (),
    ) -> None:
        self.partition = partition
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.replicas = replicas
        self.isr = isr
        self.offline_replicas = offline_replicas

    def __repr__(self) -> str:
        return f"PartitionInfo({self.partition}, leader {self.leader}, epoch {self.leader_epoch})"


class TopicInfo:
    """One topic: partitions by number, and the id that tells it from a deleted namesake."""

    __slots__ = ("available", "is_internal", "name", "partitions", "topic_id")

    def __init__(
        self, name: str, topic_id: bytes, is_internal: bool, partitions: list[PartitionInfo]
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = partitions
        self.available = [each.partition for each in partitions if each.leader >= 0]
        """Numbers of the partitions that have a leader."""

    def __repr__(self) -> str:
        return f"TopicInfo({self.name!r}, {len(self.partitions)} partitions)"


class Metadata:
    """The cluster as last heard. One thread at a time may call `advance`; reading is free."""

    def __init__(self, transport: Transport, settings: Settings, *, create_topics: bool) -> None:
        """`create_topics`: asking for an unknown topic may create it, if the broker allows."""
        self._transport = transport
        self._clock = transport.runtime.clock
        self._create_topics = create_topics
        self._age_max_ms: int = settings["metadata.max.age.ms"]
        self._backoff_ms: int = settings["retry.backoff.ms"]
        self._backoff_max_ms: int = settings["retry.backoff.max.ms"]
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, TopicInfo] = {}
        self.names_by_id: dict[bytes, str] = {}
        self.errors: dict[str, KafkaError] = {}
        """Why a wanted topic is not in `topics`, as of the last answer."""
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.answer_count = 0
        self.on_news: Callable[[], object] | None = None
        """Called after every answer."""
        self.failure: KafkaError | None = None
        """Why the cluster refused the last request as a whole."""
        self.full_version = 0
        """Counts answers about all topics."""
        self.pending: Pending[MetadataResponse] | None = None
        """The request under way."""
        self.follows_all = False
        """Every answer is to be about all topics of the cluster."""
        self._wanted: set[str] = set()
        self._update_requested = False
        self._asks_all = False
        self._pending_asks_all = False
        self._failures = 0
        self._not_before_ms = 0
        self._refreshed_ms = 0

    # What is known

    def leader(self, topic: str, partition: int) -> PartitionInfo | None:
        """The partition, if it is known and has a leader."""
        info = self.topics.get(topic)
        if info is None or partition >= len(info.partitions):
            return None
        found = info.partitions[partition]
        return found if found.leader >= 0 else None

    @property
    def is_asking(self) -> bool:
        """Is a request under way or due?"""
        return self._update_requested or self.pending is not None

    def topic_error(self, topic: str) -> KafkaError | None:
        """An error of the topic that waiting will not cure."""
        error = self.errors.get(topic)
        return error if error is not None and error.code in _SURFACED else None

    # What to ask for

    def want(self, topic: str) -> None:
        """Keep knowing `topic`; ask for it soon if it is new."""
        if topic not in self._wanted:
            self._wanted.add(topic)
            self._update_requested = True

    def forget(self, topics: Iterable[str]) -> None:
        """Ask no more for these topics; what is known of them stays."""
        self._wanted.difference_update(topics)

    def unlearn(self, topics: Iterable[str]) -> None:
        """Drop what is known of these topics, so that the next answer is seen to come."""
        names = set(topics)
        self.topics = {name: info for name, info in self.topics.items() if name not in names}
        self.errors = {name: error for name, error in self.errors.items() if name not in names}

    def want_all(self) -> None:
        """Ask once for every topic of the cluster."""
        self._asks_all = self._update_requested = True

    def request_update(self) -> None:
        """An error says that something known is wrong: ask again."""
        self._update_requested = True

    def advance(self, now_ms: int) -> int | None:
        """Take an answer that came, ask if it is time; milliseconds to the next step, if known.

        Raises:
            KafkaError: the whole request was refused with an error that will not go away.
        """
        if self.pending is not None:
            if not self.pending.done():
                return None
            pending, self.pending = self.pending, None
            self._take(pending, now_ms)
        if not self._update_requested:
            if not self._wanted and not self.follows_all:
                return None
            left = self._refreshed_ms + self._age_max_ms - now_ms
            if left > 0:
                return left
        if now_ms < self._not_before_ms:
            return self._not_before_ms - now_ms
        self._ask()
        if self.pending is None or not self.pending.done():
            return None
        pending, self.pending = self.pending, None
        self._take(pending, now_ms)
        return max(self._not_before_ms - now_ms, 0) if self._update_requested else None

    def _ask(self) -> None:
        from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic

        topics: list[MetadataRequestTopic] | None = None
        self._asks_all |= self.follows_all
        if not self._asks_all:
            topics = [MetadataRequestTopic(name=name) for name in sorted(self._wanted)]
        self._update_requested = False
        self.failure = None
        self._pending_asks_all, self._asks_all = self._asks_all, False
        request = MetadataRequest(
            topics=topics, allow_auto_topic_creation=self._create_topics and topics is not None
        )
        self.pending = self._transport.send(ANY_NODE, request)

    def _take(self, pending: Pending[MetadataResponse], now_ms: int) -> None:
        error = pending.error()
        if error is not None:
            if not isinstance(error, KafkaError) or not error.retriable:
                self.failure = as_kafka_error(error)
                raise error
            self._asks_all |= self._pending_asks_all
            self._back_off(now_ms)
            return
        response = pending.result()
        if response.error_code:
            self.failure = error_for(response.error_code)
            raise self.failure
        self._update(response)
        self._refreshed_ms = now_ms
        unsettled = [name for name in self._wanted if self._is_unsettled(name)]
        if unsettled:
            # Brokers answer that a topic is unknown, and make it. One of this process has made it.
            is_made = self._transport.in_process and self._failures == 0
            self._back_off(now_ms)
            self._not_before_ms = now_ms if is_made else self._not_before_ms
        else:
            self._failures = 0
            self._not_before_ms = now_ms + self._backoff_ms if self._update_requested else 0

    def _is_unsettled(self, name: str) -> bool:
        if name in self.errors:
            return self.topic_error(name) is None
        info = self.topics.get(name)
        return info is None or len(info.available) < len(info.partitions)

    def _back_off(self, now_ms: int) -> None:
        delay = min(self._backoff_ms << min(self._failures, 16), self._backoff_max_ms)
        self._failures += 1
        self._not_before_ms = now_ms + delay
        self._update_requested = True

    def _update(self, response: MetadataResponse) -> None:
        self.nodes = {
            each.node_id: Node(each.node_id, each.host, each.port, each.rack)
            for each in response.brokers
        }
        self._transport.set_nodes({n.node_id: (n.host, n.port) for n in self.nodes.values()})
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        was_all = self._pending_asks_all
        topics = {} if was_all else dict(self.topics)
        errors = {} if was_all else dict(self.errors)
        for described in response.topics:
            name = described.name
            if name is None:
                continue
            errors.pop(name, None)
            if described.error_code:
                topics.pop(name, None)
                errors[name] = error_for(described.error_code, f"topic {name!r}")
            else:
                topics[name] = self._merged(self.topics.get(name), described)
        self.topics, self.errors = topics, errors
        self.names_by_id = {info.topic_id: name for name, info in topics.items()}
        self.answer_count += 1
        if self.on_news is not None:
            self.on_news()
        self.full_version += was_all

    def _merged(self, old: TopicInfo | None, described: MetadataResponseTopic) -> TopicInfo:
        """The topic as described; a partition whose leader epoch fell keeps what was known."""
        same = old is not None and old.topic_id == described.topic_id
        known = {each.partition: each for each in old.partitions} if old and same else {}
        partitions = []
        for found in sorted(described.partitions, key=_partition_index):
            before = known.get(found.partition_index)
            if before is not None and 0 <= found.leader_epoch < before.leader_epoch:
                partitions.append(before)
                continue
            partitions.append(
                PartitionInfo(
                    found.partition_index,
                    found.leader_id,
                    found.leader_epoch,
                    replicas=tuple(found.replica_nodes),
                    isr=tuple(found.isr_nodes),
                    offline_replicas=tuple(found.offline_replicas),
                )
            )
        name = described.name or ""
        return TopicInfo(name, described.topic_id, described.is_internal, partitions)


def as_kafka_error(error: BaseException) -> KafkaError:
    """`error`, or an UnknownServerError that quotes it."""
    return error if isinstance(error, KafkaError) else error_for(-1, repr(error))


def _partition_index(partition: MetadataResponsePartition) -> int:
    return partition.partition_index
