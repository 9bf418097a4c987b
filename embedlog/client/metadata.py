"""A client's knowledge of the cluster: nodes, topics, and the leader of each partition.

A client asks for metadata again after metadata.max.age.ms, and when an error shows that its
knowledge is wrong. It asks about a new topic at once, and only about that topic. `advance` does
this without waiting, in any thread that calls it. The back-off between two requests grows while
they fail, or while repeated requests after an error bring nothing new.

If no node answers for metadata.recovery.rebootstrap.trigger.ms, or a broker reports another
cluster, the client distrusts all nodes and asks the bootstrap addresses again (KIP-899, KIP-1102).
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.cluster_nodes import ClusterNodes
from embedlog.client.metadata_pauses import MetadataPauses
from embedlog.client.wanted_topics import WantedTopics
from embedlog.common import Value
from embedlog.errors import KafkaError, error_for
from embedlog.transport import ANY_NODE
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from embedlog.client.settings import Settings
    from embedlog.client.wanted_topics import MetadataQuestion
    from embedlog.runtime.pending import Pending
    from embedlog.transport import Transport
    from wire.schemas.fetch import NodeEndpoint as EndpointInFetch
    from wire.schemas.metadata import MetadataResponse, MetadataResponseTopic
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
"""Errors which show that metadata is old: the client asks for metadata, then tries again."""

_SURFACED = frozenset(
    (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    )
)
"""Errors of a topic that callers get at once: they remain, however often the client asks."""


NO_LEADER = -1


class PartitionInfo(Value):
    """One partition of the metadata. `leader` is -1 while it has no leader."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()

    def without_leader(self) -> PartitionInfo:
        return self.replace(leader=NO_LEADER)

    def __repr__(self) -> str:
        return f"PartitionInfo({self.partition}, leader {self.leader}, epoch {self.leader_epoch})"


class TopicInfo:
    """One topic. `topic_id` distinguishes it from a deleted topic of the same name."""

    def __init__(
        self, name: str, topic_id: bytes, is_internal: bool, partitions: list[PartitionInfo]
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = partitions
        self.available = [each.partition for each in partitions if each.leader >= 0]

    def led_by(self, partition: int, leader: int, leader_epoch: int) -> TopicInfo:
        """Return a copy in which one partition has another leader; the replicas stay the same."""
        known = self.partitions[partition]
        changed = known.replace(leader=leader, leader_epoch=leader_epoch)
        partitions = [*self.partitions[:partition], changed, *self.partitions[partition + 1 :]]
        return TopicInfo(self.name, self.topic_id, self.is_internal, partitions)

    def __repr__(self) -> str:
        return f"TopicInfo({self.name!r}, {len(self.partitions)} partitions)"


class Metadata:
    """The newest metadata. Only one thread at a time may call `advance`; any thread may read."""

    def __init__(self, transport: Transport, settings: Settings, *, create_topics: bool) -> None:
        self._transport = transport
        self.wanted = WantedTopics(settings, create_topics=create_topics)
        self._pauses = MetadataPauses(settings, transport.runtime.random)
        self.cluster = ClusterNodes(transport)
        self.topics: dict[str, TopicInfo] = {}
        self.names_by_id: dict[bytes, str] = {}
        self.errors: dict[str, KafkaError] = {}
        """By topic, the error of a wanted topic that is missing from `topics`."""
        self.answer_count = 0
        self.change_count = 0
        """Counts answers, and the changes of leaders that other responses reported (KIP-951)."""
        self.full_version = 0
        """Number of the last answered request that asked about all topics."""
        self.on_news: Callable[[], object] | None = None
        """Called after every answer, and after a change of leaders."""
        self.failure: KafkaError | None = None
        """The error with which the cluster refused the whole last request."""
        self.last_error: KafkaError | None = None
        """The reason why the last request got no answer; None if it got one."""
        self.pending: Pending[MetadataResponse] | None = None
        self._question: MetadataQuestion | None = None
        """The last request, and whether it asked about all topics or only new ones."""

    # Lookups

    def disk_error(self, topic: str, partition: int) -> Exception | None:
        """Return why the disk of a leader in this process fails, None if unknown or passing.

        No other replica can take over, so the client does not try again.
        """
        return self._transport.disk_error(topic, partition) if self._transport.in_process else None

    def leader(self, topic: str, partition: int) -> PartitionInfo | None:
        """Return the partition, or None if it is unknown or has no leader."""
        info = self.topics.get(topic)
        if info is None or partition >= len(info.partitions):
            return None
        found = info.partitions[partition]
        return found if found.leader in self.cluster.by_id else None

    @property
    def is_asking(self) -> object:
        """True, in a condition, if a request is under way or shall be sent."""
        return self._pauses.is_requested or self.wanted.new or self.pending

    def age_ms(self, now_ms: int) -> int:
        return self._pauses.age_ms(now_ms)

    def topic_error(self, topic: str) -> KafkaError | None:
        """Return the topic's error if waiting will not cure it, else None."""
        error = self.errors.get(topic)
        return error if error is not None and error.code in _SURFACED else None

    # Requests

    def want(self, topic: str) -> None:
        """Keep the topic's metadata up to date; ask at once if it is new. From any thread."""
        if self.wanted.want(topic, self._transport.runtime.clock.monotonic_ms()):
            self._pauses.reset()

    def unlearn(self, topics: Iterable[str]) -> None:
        """Forget the metadata of these topics, so that a caller can see the next answer arrive."""
        names = set(topics)
        self.topics = {name: info for name, info in self.topics.items() if name not in names}
        self.errors = {name: error for name, error in self.errors.items() if name not in names}

    def want_all(self) -> None:
        self.wanted.want_all()
        self._pauses.is_requested = True

    def request_update(self) -> None:
        """Ask again, after an error that shows that the metadata is wrong."""
        self._pauses.is_requested = True

    def want_now(self) -> None:
        """The user asks for metadata: skip the pause that follows answers without changes."""
        self._pauses.skip_repeats()

    def advance(self, now_ms: int) -> int | None:
        """Take an answer that has arrived; send the next request if it is due.

        Return the milliseconds until the next step. None means that only an answer can make another
        step useful, or that there is nothing to do.

        Raises:
            KafkaError: the cluster refused the whole request with an error that will not go away.
        """
        if self.pending is not None:
            if not self.pending.done():
                return None
            pending, self.pending = self.pending, None
            self._take(pending, now_ms)
        if not self._pauses.is_requested and not self.wanted.new:
            if not self.wanted.used and not self.wanted.follows_all:
                return None
            left = self._pauses.expires_at_ms - now_ms
            if left > 0:
                return left
            self._pauses.expire()
        left = self._pauses.left_ms(now_ms)
        if left > 0:
            return left
        self._ask(now_ms)
        if self.pending is None or not self.pending.done():
            return None
        pending, self.pending = self.pending, None
        self._take(pending, now_ms)
        return max(self._pauses.left_ms(now_ms), 0) if self._pauses.is_requested else None

    def learn_leaders(
        self,
        leaders: Mapping[tuple[str, int], tuple[int, int]],
        endpoints: Iterable[NodeEndpoint | EndpointInFetch],
    ) -> None:
        """Take new leaders from a broker's answer to another request (KIP-951).

        `leaders` are (node id, epoch) by (topic, partition). A leader is ignored if its address is
        unknown or its epoch is not newer than the known one.
        """
        nodes = self.cluster.with_endpoints(endpoints)
        topics = dict(self.topics)
        for (name, partition), (node_id, epoch) in leaders.items():
            known = self.leader_epoch(name, partition)
            if node_id in nodes and epoch > known >= -1 and name in topics:
                topics[name] = topics[name].led_by(partition, node_id, epoch)
        if topics == self.topics:
            return
        self.cluster.replace(nodes)
        self.topics = topics
        self.change_count += 1
        if self.on_news is not None:
            self.on_news()

    def leader_epoch(self, topic: str, partition: int) -> int:
        """Return the newest known leader epoch; -1 for none, -2 for an unknown partition."""
        info = self.topics.get(topic)
        if info is None or partition >= len(info.partitions):
            return -2
        return info.partitions[partition].leader_epoch

    def _ask(self, now_ms: int) -> None:
        only_new = self._pauses.expires_at_ms > now_ms and not self._pauses.is_requested
        if not only_new and not self.wanted.are_all:
            idle = self.wanted.take_idle(now_ms)
            if idle:
                self.unlearn(idle)
        self._question = self.wanted.next_question(only_new=only_new)
        self._pauses.is_requested = False
        self.failure = None
        self.pending = self._transport.send(ANY_NODE, self._question.request)

    def _take(self, pending: Pending[MetadataResponse], now_ms: int) -> None:
        question = self._question
        assert question is not None, pending
        error = pending.error()
        if error is not None:
            self._take_failure(error, question, now_ms)
            return
        response = pending.result()
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self.cluster.bootstrap_again()
            self._take_failure(errors.Network("another cluster"), question, now_ms)
            return
        if response.error_code:
            self.failure = error_for(response.error_code)
            raise self.failure
        if not response.brokers:
            # Ask again later: the broker has only begun to learn about its cluster.
            self._take_failure(
                errors.Network("the broker does not know its cluster yet"), question, now_ms
            )
            return
        self.last_error = None
        told_news = self._update(response, was_all=question.asks_all)
        self._pauses.answered(now_ms, told_news=told_news, is_partial=question.is_partial)
        self.wanted.tell_missing(self.errors, now_ms)
        in_process = self._transport.in_process
        if any(self._is_unsettled(name) for name in list(self.wanted.used)):
            # Brokers answer that a topic is unknown, and then create it: ask again. A broker of
            # this process has created it already, so the first pause is left out.
            self._pauses.back_off(now_ms, at_once=in_process and not self._pauses.has_failed)
        else:
            self._pauses.settle(now_ms, pauses=not in_process)

    def _take_failure(self, error: BaseException, question: MetadataQuestion, now_ms: int) -> None:
        if not isinstance(error, KafkaError) or not error.retriable:
            self.failure = as_kafka_error(error)
            raise error
        self.last_error = error
        if question.asks_all:
            self.wanted.want_all()
        if self._pauses.unanswered(now_ms):
            self.cluster.bootstrap_again()

    def _is_unsettled(self, name: str) -> bool:
        if name in self.wanted.new:
            return False
        if name in self.errors:
            return self.topic_error(name) is None
        info = self.topics.get(name)
        return info is None or len(info.available) < len(info.partitions)

    def _update(self, response: MetadataResponse, *, was_all: bool) -> bool:
        """Take an answer; return whether it brought anything new."""
        before = (self.cluster.addresses, self.topics, self.errors.keys())
        self.cluster.take(response)
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
        self.change_count += 1
        if self.on_news is not None:
            self.on_news()
        number = self.wanted.answered = self.wanted.question_count
        if was_all:
            self.full_version = number
        # `_merged` keeps the object of an unchanged topic, so this comparison is cheap.
        return before != (self.cluster.addresses, topics, errors.keys())

    def _merged(self, old: TopicInfo | None, described: MetadataResponseTopic) -> TopicInfo:
        """Return the described topic, or `old` itself if nothing changed.

        A partition whose leader epoch fell keeps its known state.
        """
        same = old is not None and old.topic_id == described.topic_id
        known = {each.partition: each for each in old.partitions} if old and same else {}
        nodes = self.cluster.addresses
        partitions = []
        for found in sorted(described.partitions, key=lambda each: each.partition_index):
            before = known.get(found.partition_index)
            if before is not None and 0 <= found.leader_epoch < before.leader_epoch:
                partitions.append(before if before.leader in nodes else before.without_leader())
                continue
            info = PartitionInfo(
                found.partition_index,
                # A leader that the answer's list of nodes lacks has just gone: nobody can reach it.
                found.leader_id if found.leader_id in nodes else NO_LEADER,
                found.leader_epoch,
                replicas=tuple(found.replica_nodes),
                isr=tuple(found.isr_nodes),
                offline_replicas=tuple(found.offline_replicas),
            )
            partitions.append(before if before == info and before is not None else info)
        if old is not None and same and partitions == old.partitions:
            return old
        name = described.name or ""
        return TopicInfo(name, described.topic_id, described.is_internal, partitions)


def as_kafka_error(error: BaseException) -> KafkaError:
    """Return `error`, or an UnknownServerError that quotes it."""
    return error if isinstance(error, KafkaError) else errors.UnknownServerError(repr(error))


def _text_of(name: str, code: int) -> str:
    """Return the text of a topic's error; for a refused name, add the reason."""
    if code != ErrorCode.INVALID_TOPIC_EXCEPTION:
        return f"topic {name!r}"
    from embedlog.topic_names import problem_of

    return f"topic {name!r}: {problem_of(name) or 'the broker refuses the name'}"
