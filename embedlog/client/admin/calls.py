"""`AdminCalls`: sends the admin client's requests to the right brokers and retries them."""

from __future__ import annotations

from embedlog import errors
from embedlog.client.errors import because
from embedlog.client.metadata import Metadata
from embedlog.client.waiting import Waiter
from embedlog.errors import KafkaError, TimedOut, error_for
from embedlog.runtime.pending import Pending
from embedlog.transport import ANY_NODE, newest_common
from wire.error_codes import ErrorCode
from wire.schema import declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    from embedlog.client.settings import Settings
    from embedlog.common import TopicPartition
    from embedlog.transport import Transport
    from wire.schema import R, Request

    K = TypeVar("K")
    V = TypeVar("V")

_ASK_ANOTHER_LEADER = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
    )
)


class AdminCalls:
    """Makes calls with a deadline. Used by one thread at a time."""

    def __init__(self, transport: Transport, settings: Settings) -> None:
        self._transport = transport
        self._clock = transport.runtime.clock
        self._timeout_ms: int = settings["default.api.timeout.ms"]
        self._backoff_ms: int = settings["retry.backoff.ms"]
        self._retries: int = settings["retries"]
        self.metadata = Metadata(transport, settings, create_topics=False)
        self._waiter = Waiter(transport, self.metadata)
        self.arrived = self._waiter.arrived

    def timeout(self, timeout_ms: int | None) -> int:
        """Return the time limit of a call in ms: `timeout_ms`, or the default if that is None."""
        return self._timeout_ms if timeout_ms is None else timeout_ms

    def deadline(self, timeout_ms: int | None) -> int:
        """Return the time, on the monotonic clock, at which a call that begins now must end."""
        return self._clock.monotonic_ms() + self.timeout(timeout_ms)

    def left_ms(self, deadline: int) -> int:
        """Return the milliseconds until `deadline`; 0 if it has passed."""
        return max(deadline - self._clock.monotonic_ms(), 0)

    def call(self, node_id: int, request: Request[R], timeout_ms: int | None = None) -> R:
        """Return a broker's response; send the request again after retriable errors.

        Raises:
            TimedOut: there was no response in time.
            KafkaError: the request failed, and a retry cannot help.
        """
        deadline = self.deadline(timeout_ms)
        attempts = 0
        last: KafkaError | None = None
        while True:
            try:
                return self.attempt(node_id, request, deadline, last=last)
            except KafkaError as error:
                if not error.retriable or attempts >= self._retries:
                    raise
                last = error
            attempts += 1
            self.metadata.request_update()  # the node may be gone or have moved
            self.sleep(deadline)

    def attempt(
        self,
        node_id: int,
        request: Request[R],
        deadline: int,
        *,
        version: int | None = None,
        last: KafkaError | None = None,
    ) -> R:
        """Send a request once and return the response. `last` is the error of an earlier attempt.

        Raises:
            TimedOut: there was no response by `deadline`.
            KafkaError: the request or its node failed.
        """
        self._find(node_id, deadline)
        pending = self._transport.send(node_id, request, version=version)
        self._await(pending, deadline, request, last)
        return pending.result()

    def to_nodes(
        self, requests: Mapping[int, Request[R]], timeout_ms: int | None
    ) -> dict[int, R | KafkaError]:
        """Send requests to brokers in parallel, with retries; return each response or error.

        The keys are node ids. A broker that does not answer in time has the error RequestTimedOut.
        """
        deadline = self.deadline(timeout_ms)
        outcomes: dict[int, R | KafkaError] = {}
        left = list(requests)
        for _ in range(self._retries + 1):
            asked = [(node_id, requests[node_id], None) for node_id in left]
            for node_id, outcome in zip(left, self.at_once(asked, deadline), strict=True):
                if isinstance(outcome, TimedOut):
                    last = outcomes.get(node_id)
                    text = f"{outcome}{because(last) if isinstance(last, KafkaError) else ''}"
                    outcomes[node_id] = errors.RequestTimedOut(text)
                else:
                    outcomes[node_id] = outcome
            left = [node_id for node_id in left if _is_retriable(outcomes[node_id])]
            if not left or not self.left_ms(deadline):
                break
            self.metadata.request_update()
            self.sleep(deadline)
        return outcomes

    def at_once(
        self, requests: Sequence[tuple[int, Request[R], int | None]], deadline: int
    ) -> list[R | KafkaError | TimedOut]:
        """Send requests, (node id, request, version), in parallel; return each response or error.

        TimedOut stands for a broker that did not answer by `deadline`.

        Raises:
            TimedOut: no broker returned the metadata in time.
        """
        sent: list[Pending[R]] = []
        for node_id, request, version in requests:
            try:
                self._find(node_id, deadline)
            except KafkaError as error:
                sent.append(Pending())
                sent[-1].fail(error)
            else:
                sent.append(self._transport.send(node_id, request, version=version))
        outcomes: list[R | KafkaError | TimedOut] = []
        for (_, request, _), pending in zip(requests, sent, strict=True):
            try:
                self._await(pending, deadline, request, None)
                outcomes.append(pending.result())
            except (KafkaError, TimedOut) as error:
                outcomes.append(error)
        return outcomes

    def node_ids(self, timeout_ms: int | None) -> list[int]:
        """Return the ids of all running brokers."""
        self.describe_all(timeout_ms)
        return list(self.metadata.cluster.by_id)

    def to_controller(self, request: Request[R], timeout_ms: int | None) -> R:
        """Return the controller's response.

        Any broker of a KRaft cluster forwards the request. An older broker answers NOT_CONTROLLER;
        then the request goes to the controller.
        """
        response = self.call(ANY_NODE, request, timeout_ms)
        if _is_not_controller(response):
            self.describe_all(timeout_ms)
            response = self.call(self.metadata.cluster.controller_id, request, timeout_ms)
        return response

    def newest_version(
        self, kind: type[Request[Any]], timeout_ms: int | None = None, *, node_id: int = ANY_NODE
    ) -> int:
        """Return the newest version of a request that both this client and the broker know.

        Raises:
            UnsupportedVersion: the client and the broker have no version in common.
        """
        served = self._transport.versions(node_id) or self._transport.versions(ANY_NODE)
        if served is None:
            self.describe_all(timeout_ms)
            served = self._transport.versions(ANY_NODE) or {}
        api_key = declaration(kind).api
        assert api_key is not None, kind
        return newest_common(kind, served.get(api_key))

    def until_described(self, names: list[str], timeout_ms: int) -> None:
        """Request metadata of topics and wait until each topic has an answer or an error.

        The answer to an earlier request does not count, because it may be outdated.
        """
        metadata = self.metadata
        asked_before = metadata.wanted.question_count
        for name in names:
            metadata.want(name)
        metadata.want_now()
        metadata.request_update()

        def are_described() -> bool:
            if metadata.wanted.answered <= asked_before:
                return False
            return all(name in metadata.topics or name in metadata.errors for name in names)

        self.drive(are_described, timeout_ms)
        metadata.wanted.forget(names)

    def to_leaders(
        self,
        items: Iterable[TopicPartition],
        request_for: Callable[[list[TopicPartition]], Request[R]],
        take: Callable[[R], dict[TopicPartition, tuple[int, V]]],
        timeout_ms: int | None,
    ) -> dict[TopicPartition, V | KafkaError]:
        """Send requests to the partitions' leaders; return each partition's value or error.

        `take(response)` returns (error code, value) by partition. A partition whose leader has
        moved is requested again. One whose leader does not answer has the error RequestTimedOut.

        Raises:
            TimedOut: no leader answered, or no broker returned the metadata.
        """
        outcomes: dict[TopicPartition, V | KafkaError] = {}
        left = list(items)
        deadline = self.deadline(timeout_ms)
        silent: dict[TopicPartition, TimedOut] = {}
        while left:
            names = sorted({key.topic for key in left})
            try:
                self.until_described(names, self.left_ms(deadline))
            except TimedOut:
                if not outcomes:
                    raise
                break  # each partition has its outcome of the last attempt
            by_leader, again = self._by_leader(left, outcomes)
            requests = [(node_id, request_for(keys), None) for node_id, keys in by_leader.items()]
            found = self.at_once(requests, deadline)
            for keys, response in zip(by_leader.values(), found, strict=True):
                if isinstance(response, TimedOut):
                    silent.update(dict.fromkeys(keys, response))
                    for key in keys:
                        outcomes.pop(key, None)
                elif isinstance(response, KafkaError):
                    outcomes.update(dict.fromkeys(keys, response))
                    again += keys if response.retriable else []
                else:
                    again += _take(keys, take(response), outcomes)
            left = [key for key in again if self._has_partition(key)]
            if not left or not self.left_ms(deadline):
                break
            self.sleep(deadline)
        return told(outcomes, silent)

    def _by_leader(
        self, keys: list[TopicPartition], outcomes: dict[TopicPartition, Any]
    ) -> tuple[dict[int, list[TopicPartition]], list[TopicPartition]]:
        """Return the partitions by leader, and the partitions without one, which have an error."""
        by_leader: dict[int, list[TopicPartition]] = {}
        without: list[TopicPartition] = []
        for key in keys:
            leader = self.metadata.leader(*key)
            if leader is not None:
                by_leader.setdefault(leader.leader, []).append(key)
            elif key.topic in self.metadata.topics:
                without.append(key)
                outcomes[key] = errors.UnknownTopicOrPartition(str(key))
            else:
                outcomes[key] = self.metadata.errors[key.topic]
        return by_leader, without

    def drive(
        self,
        is_done: Callable[[], bool],
        timeout_ms: int | None,
        *steps: Callable[[int], int | None],
        reason: Callable[[], KafkaError | None] = lambda: None,
    ) -> None:
        """Advance metadata and the state machines `steps` until `is_done()`.

        `reason` returns the answer that makes the steps ask again.

        Raises:
            TimedOut: it took longer than `timeout_ms`.
        """
        limit = self.timeout(timeout_ms)
        if self._waiter.until(is_done, limit, *steps):
            return
        unanswered, refusal = self.metadata.last_error, reason()
        if unanswered is None and refusal is not None:
            raise TimedOut(f"the call had no result within {limit} ms{because(refusal)}")
        raise TimedOut(f"the brokers did not answer within {limit} ms{because(unanswered)}")

    def _has_partition(self, key: TopicPartition) -> bool:
        info = self.metadata.topics.get(key.topic)
        return info is not None and key.partition < len(info.partitions)

    def sleep(self, deadline: int) -> None:
        """Wait for retry.backoff.ms, but not past `deadline`, and advance metadata meanwhile."""
        self._waiter.until(lambda: False, min(self._backoff_ms, self.left_ms(deadline)))

    def _await(
        self, pending: Pending[Any], deadline: int, request: Request[Any], last: KafkaError | None
    ) -> None:
        while not pending.done():
            left = self.left_ms(deadline)
            if not left:
                name = type(request).__name__.removesuffix("Request")
                raise TimedOut(f"{name}: no broker answered in time{because(last)}")
            self._transport.wait(pending, left)

    def _find(self, node_id: int, deadline: int) -> None:
        """Look up the broker's address.

        Raises:
            BrokerNotAvailable: the cluster has no such broker.
            TimedOut: no broker returned the metadata in time.
        """
        if node_id == ANY_NODE or node_id in self.metadata.cluster.by_id:
            return
        self.describe_all(self.left_ms(deadline))
        if node_id not in self.metadata.cluster.by_id:
            raise errors.BrokerNotAvailable(f"there is no broker {node_id}")

    def describe_all(self, timeout_ms: int | None) -> None:
        """Request metadata of all topics and brokers, and wait for it."""
        asked_before = self.metadata.wanted.question_count
        self.metadata.want_now()
        self.metadata.want_all()
        self.drive(lambda: self.metadata.full_version > asked_before, timeout_ms)


def told(
    outcomes: dict[K, V | KafkaError], silent: Mapping[K, TimedOut]
) -> dict[K, V | KafkaError]:
    """Return the outcomes, with an error for the items that no broker answered about.

    Raises:
        TimedOut: no item has another outcome.
    """
    for item, timed_out in silent.items():
        if not outcomes:
            raise timed_out
        outcomes.setdefault(item, errors.RequestTimedOut(str(timed_out)))
    return outcomes


def _take(
    keys: list[TopicPartition],
    answers: Mapping[TopicPartition, tuple[int, V]],
    outcomes: dict[TopicPartition, V | KafkaError],
) -> list[TopicPartition]:
    """Note the outcomes of `keys`; return the partitions that have another leader."""
    again = []
    for key in keys:
        answer = answers.get(key)
        # If the response lacks the partition, report this as UNKNOWN_SERVER_ERROR.
        code = ErrorCode.UNKNOWN_SERVER_ERROR if answer is None else answer[0]
        if answer is None or code:
            outcomes[key] = error_for(code, str(key))
        else:
            outcomes[key] = answer[1]
        if code in _ASK_ANOTHER_LEADER:
            again.append(key)
    return again


def _is_retriable(outcome: object) -> bool:
    return isinstance(outcome, KafkaError) and outcome.retriable


def _is_not_controller(response: Any) -> bool:
    if getattr(response, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
        return True
    for name in ("topics", "results", "responses"):
        answers = getattr(response, name, None)
        if answers:
            return any(
                getattr(each, "error_code", 0) == ErrorCode.NOT_CONTROLLER for each in answers
            )
    return False
