"""What a client knows of the cluster: nodes, topics, and who leads each partition.

Knowledge ages: it is asked for again after metadata.max.age.ms, when an error says that it is
wrong, and when a new topic is named; then only about that topic. `advance` does that without
waiting, whoever drives. Between two requests lies a back-off, which grows while they fail, or
while the answers to "something is wrong" say nothing new.

When no node answers for metadata.recovery.rebootstrap.trigger.ms, or a broker says that this is
another cluster, all of it is doubted and the first addresses are asked again (KIP-899, KIP-1102).
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.backoff import Backoff
from embedlog.errors import KafkaError, error_for
from embedlog.transport import ANY_NODE
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from embedlog.client.settings import Settings
    from embedlog.pending import Pending
    from embedlog.transport import Transport
    from wire.schemas.metadata import (
        MetadataResponse,
        MetadataResponsePartition,
        MetadataResponseTopic,
    )
    from wire.schemas.produce import NodeEndpoint

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

_NEVER_MS = -(1 << 62)

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

    def equals(self, other: PartitionInfo) -> bool:
        """Is all of it the same?"""
        names = PartitionInfo.__slots__
        return all(getattr(self, name) == getattr(other, name) for name in names)

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

    def led_by(self, partition: int, leader: int, leader_epoch: int) -> TopicInfo:
        """The topic with another leader of one partition; its replicas are as they were."""
        known = self.partitions[partition]
        changed = PartitionInfo(
            partition,
            leader,
            leader_epoch,
            replicas=known.replicas,
            isr=known.isr,
            offline_replicas=known.offline_replicas,
        )
        partitions = [*self.partitions[:partition], changed, *self.partitions[partition + 1 :]]
        return TopicInfo(self.name, self.topic_id, self.is_internal, partitions)

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
        self._idle_max_ms: int | None = settings.get("metadata.max.idle.ms")
        self._doubt_after_ms: int = settings["metadata.recovery.rebootstrap.trigger.ms"]
        self._backoff = Backoff.of_retries(settings, transport.runtime.random)
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
        self.topics_in_use: Callable[[], Iterable[str]] = tuple
        """Topics that are used without a word to this object; none of them is idle."""
        self.failure: KafkaError | None = None
        """Why the cluster refused the last request as a whole."""
        self.last_error: KafkaError | None = None
        """Why the last request got no answer; None when it got one."""
        self.full_version = 0
        """Counts answers about all topics."""
        self.pending: Pending[MetadataResponse] | None = None
        """The request under way."""
        self.follows_all = False
        """Every answer is to be about all topics of the cluster."""
        self._wanted: dict[str, int] = {}
        """Topics to keep knowing, and when they were used last."""
        self._new: set[str] = set()
        """Of those: the ones that nobody was asked about."""
        self._update_requested = False
        self._asks_all = False
        self._pending_asks_all = False
        self._pending_is_partial = False
        self._failures = 0
        """Requests without an answer, or with one that left something open, in a row."""
        self._repeats = 0
        """Answers that told nothing new to a request for an update, in a row."""
        self._not_before_ms = 0
        self._refreshed_ms = _NEVER_MS
        self._unanswered_since_ms = -1
        """When the first of the present failures was; -1 after an answer."""

    # What is known

    def leader(self, topic: str, partition: int) -> PartitionInfo | None:
        """The partition, if it is known and has a leader."""
        info = self.topics.get(topic)
        if info is None or partition >= len(info.partitions):
            return None
        found = info.partitions[partition]
        return found if found.leader in self.nodes else None

    @property
    def is_asking(self) -> bool:
        """Is a request under way or due?"""
        return bool(self._update_requested or self._new or self.pending)

    def age_ms(self, now_ms: int) -> int:
        """Milliseconds since the last answer about all that is followed; 0 before the first."""
        return now_ms - self._refreshed_ms if self._refreshed_ms != _NEVER_MS else 0

    def topic_error(self, topic: str) -> KafkaError | None:
        """An error of the topic that waiting will not cure."""
        error = self.errors.get(topic)
        return error if error is not None and error.code in _SURFACED else None

    # What to ask for

    def want(self, topic: str) -> None:
        """Keep knowing `topic`; ask for it at once if it is new. From any thread."""
        is_new = topic not in self._wanted
        self._wanted[topic] = self._clock.monotonic_ms()
        if is_new:
            self._new.add(topic)
            self._not_before_ms = self._failures = self._repeats = 0

    def forget(self, topics: Iterable[str]) -> None:
        """Ask no more for these topics; what is known of them stays."""
        for topic in topics:
            self._wanted.pop(topic, None)
            self._new.discard(topic)

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

    def want_now(self) -> None:
        """The user asks: the pause after answers that told nothing new is not for this request."""
        if not self._failures:
            self._not_before_ms = self._repeats = 0

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
        if not self._update_requested and not self._new:
            if not self._wanted and not self.follows_all:
                return None
            left = self._refreshed_ms + self._age_max_ms - now_ms
            if left > 0:
                return left
            self._update_requested = True
            self._repeats = 0
        if now_ms < self._not_before_ms:
            return self._not_before_ms - now_ms
        self._ask(now_ms)
        if self.pending is None or not self.pending.done():
            return None
        pending, self.pending = self.pending, None
        self._take(pending, now_ms)
        return max(self._not_before_ms - now_ms, 0) if self._update_requested else None

    def learn_leaders(
        self,
        leaders: Mapping[tuple[str, int], tuple[int, int]],
        endpoints: Iterable[NodeEndpoint],
    ) -> None:
        """Believe a broker that says who leads partitions, if it is news (KIP-951).

        `leaders` are (node id, epoch) by (topic, partition). A leader that nobody told the address
        of is not believed in, nor one of an epoch that is known already.
        """
        nodes = {e.node_id: Node(e.node_id, e.host, e.port, e.rack) for e in endpoints}
        nodes = {**self.nodes, **nodes}
        topics = dict(self.topics)
        for (name, partition), (node_id, epoch) in leaders.items():
            known = self.leader_epoch(name, partition)
            if node_id in nodes and epoch > known >= -1 and name in topics:
                topics[name] = topics[name].led_by(partition, node_id, epoch)
        if topics == self.topics:
            return
        self.nodes, self.topics = nodes, topics
        self._tell_nodes()
        if self.on_news is not None:
            self.on_news()

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The newest leader epoch that was heard of; -1 for none, -2 if there is no partition."""
        info = self.topics.get(topic)
        if info is None or partition >= len(info.partitions):
            return -2
        return info.partitions[partition].leader_epoch

    def _ask(self, now_ms: int) -> None:
        from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic

        self._asks_all |= self.follows_all
        is_fresh = self._refreshed_ms + self._age_max_ms > now_ms
        is_partial = is_fresh and not self._update_requested and not self._asks_all
        topics: list[MetadataRequestTopic] | None = None
        if not self._asks_all:
            if not is_partial:
                self._forget_idle(now_ms)
            asked = sorted(self._new if is_partial else self._wanted)
            topics = [MetadataRequestTopic(name=name) for name in asked]
            self._new.difference_update(asked)  # others may have been added meanwhile
        self._update_requested = False
        self.failure = None
        self._pending_is_partial = is_partial
        self._pending_asks_all, self._asks_all = self._asks_all, False
        request = MetadataRequest(
            topics=topics, allow_auto_topic_creation=self._create_topics and topics is not None
        )
        self.pending = self._transport.send(ANY_NODE, request)

    def _forget_idle(self, now_ms: int) -> None:
        """Stop following the topics that nobody has used for metadata.max.idle.ms."""
        if self._idle_max_ms is None:
            return
        for name in self.topics_in_use():
            if name in self._wanted:
                self._wanted[name] = now_ms
        limit = now_ms - self._idle_max_ms
        idle = [name for name, used_ms in list(self._wanted.items()) if used_ms <= limit]
        if idle:
            self.forget(idle)
            self.unlearn(idle)

    def _take(self, pending: Pending[MetadataResponse], now_ms: int) -> None:
        error = pending.error()
        if error is not None:
            self._take_failure(error, now_ms)
            return
        response = pending.result()
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self._transport.bootstrap_again()
            self._take_failure(errors.Network("another cluster"), now_ms)
            return
        if response.error_code:
            self.failure = error_for(response.error_code)
            raise self.failure
        self._unanswered_since_ms = -1
        self.last_error = None
        told_news = self._update(response)
        self._repeats = 0 if told_news or self._pending_is_partial else self._repeats + 1
        if not self._pending_is_partial:
            self._refreshed_ms = now_ms
        unsettled = [name for name in list(self._wanted) if self._is_unsettled(name)]
        if unsettled:
            # Brokers answer that a topic is unknown, and make it. One of this process has made it.
            is_made = self._transport.in_process and self._failures == 0
            self._back_off(now_ms)
            self._not_before_ms = now_ms if is_made else self._not_before_ms
            return
        self._failures = 0
        pause = (
            0 if self._transport.in_process else self._backoff.delay_ms(max(self._repeats - 1, 0))
        )
        self._not_before_ms = now_ms + pause

    def _take_failure(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, KafkaError) or not error.retriable:
            self.failure = as_kafka_error(error)
            raise error
        self.last_error = error
        self._asks_all |= self._pending_asks_all
        self._back_off(now_ms)
        if self._unanswered_since_ms < 0:
            self._unanswered_since_ms = now_ms
        elif now_ms - self._unanswered_since_ms >= self._doubt_after_ms:
            self._unanswered_since_ms = now_ms
            self._transport.bootstrap_again()

    def _is_unsettled(self, name: str) -> bool:
        if name in self._new:
            return False
        if name in self.errors:
            return self.topic_error(name) is None
        info = self.topics.get(name)
        return info is None or len(info.available) < len(info.partitions)

    def _back_off(self, now_ms: int) -> None:
        self._not_before_ms = now_ms + self._backoff.delay_ms(self._failures)
        self._failures += 1
        self._update_requested = True

    def _tell_nodes(self) -> None:
        self._transport.set_nodes(_addresses(self.nodes))

    def _update(self, response: MetadataResponse) -> bool:
        """Take what an answer tells; was any of it new?"""
        before = (_addresses(self.nodes), self.topics, self.errors.keys())
        self.nodes = {
            each.node_id: Node(each.node_id, each.host, each.port, each.rack)
            for each in response.brokers
        }
        self._tell_nodes()
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
                errors[name] = error_for(described.error_code, _text_of(name, described.error_code))
            else:
                topics[name] = self._merged(self.topics.get(name), described)
        self.topics, self.errors = topics, errors
        self.names_by_id = {info.topic_id: name for name, info in topics.items()}
        self.answer_count += 1
        if self.on_news is not None:
            self.on_news()
        self.full_version += was_all
        # Topics of which nothing has changed are the same objects, see `_merged`.
        return before != (_addresses(self.nodes), topics, errors.keys())

    def _merged(self, old: TopicInfo | None, described: MetadataResponseTopic) -> TopicInfo:
        """The topic as described; a partition whose leader epoch fell keeps what was known.

        It is `old` itself when that is all the same.
        """
        same = old is not None and old.topic_id == described.topic_id
        known = {each.partition: each for each in old.partitions} if old and same else {}
        partitions = []
        for found in sorted(described.partitions, key=_partition_index):
            before = known.get(found.partition_index)
            if before is not None and 0 <= found.leader_epoch < before.leader_epoch:
                partitions.append(before)
                continue
            info = PartitionInfo(
                found.partition_index,
                found.leader_id,
                found.leader_epoch,
                replicas=tuple(found.replica_nodes),
                isr=tuple(found.isr_nodes),
                offline_replicas=tuple(found.offline_replicas),
            )
            partitions.append(before if before is not None and before.equals(info) else info)
        if old is not None and same and partitions == old.partitions:
            return old
        name = described.name or ""
        return TopicInfo(name, described.topic_id, described.is_internal, partitions)


def as_kafka_error(error: BaseException) -> KafkaError:
    """`error`, or an UnknownServerError that quotes it."""
    return error if isinstance(error, KafkaError) else errors.UnknownServerError(repr(error))


def _text_of(name: str, code: int) -> str:
    """What an error of a topic is about; a broker does not say why it refuses a name."""
    if code != ErrorCode.INVALID_TOPIC_EXCEPTION:
        return f"topic {name!r}"
    from embedlog.topic_names import problem_of

    return f"topic {name!r}: {problem_of(name) or 'the broker refuses the name'}"


def _addresses(nodes: Mapping[int, Node]) -> dict[int, tuple[str, int]]:
    return {each.node_id: (each.host, each.port) for each in nodes.values()}


def _partition_index(partition: MetadataResponsePartition) -> int:
    return partition.partition_index
