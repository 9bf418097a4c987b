"""`ShareStateClient`: the way of other parts of a broker to the share coordinators.

    call -> the places by coordinator -> a request each -> answers
                 again after a pause  <-  places whose coordinator moves, loads or is out of reach

A call is final after `_ATTEMPT_COUNT_MAX` attempts, with the last error. Requests of a call that go
to the same coordinator are one request.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import Value
from embedlog.coordinator.answers import combined, then
from embedlog.coordinator.append_errors import as_coordinator_error
from embedlog.coordinator.share.keys import Place as Place
from embedlog.coordinator.share.keys import by_topic, key_text
from embedlog.errors import EmbedlogError
from embedlog.purgatory.timer import Timer, TimerTask
from embedlog.runtime.pending import Pending
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Protocol

    from embedlog.runtime import Runtime
    from wire.schema import R, Request

    class ShareStateRoutes(Protocol):
        """The way to the share coordinators, whatever brokers they are on."""

        def node_of(self, key: str) -> int:
            """Return the broker that coordinates a key; create the internal topic if necessary.

            Raises:
                CoordinatorNotAvailable: no broker does at present.
            """

        def send(self, node_id: int, request: Request[R]) -> R | Pending[R]:
            """Send a request to a broker."""

    Build = Callable[[Sequence[Place]], Request[Any]]

_ATTEMPT_COUNT_MAX = 5
_FIRST_PAUSE_MS = 1000
_PAUSE_MS_MAX = 30_000
_JITTER_PERCENT = 20

_RETRIED = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class StateBatch(Value):
    """The delivery state of the offsets from the first to the last, both included."""

    first_offset: int
    last_offset: int
    delivery_state: int
    """0 available, 2 acknowledged, 3 on its way to the dead letters, 4 archived."""
    delivery_count: int


class ShareState(Value):
    """The stored state of a share partition. A start offset of -1 was never decided."""

    state_epoch: int
    start_offset: int
    batches: list[StateBatch]


class ShareSummary(Value):
    """The stored state without its batches; an unknown share partition has the defaults."""

    error_code: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = -1
    delivery_complete_count: int = -1
    """Number of offsets from the start that are acknowledged or archived; -1 if unknown."""


class ShareStateClient:
    """Asks the share coordinators about the state of share partitions.

    Every answer is a `Pending`; no call waits. Every method may be called from any thread that
    holds no shard's or partition's lock. An answer may come before the call returns.
    """

    def __init__(self, runtime: Runtime, routes: ShareStateRoutes) -> None:
        self._random = runtime.random
        self._scheduler = runtime.scheduler
        self._routes = routes
        self._timer = Timer(runtime.clock, runtime.scheduler.notify)
        self._is_closed = False
        runtime.scheduler.add(self._timer, is_timer=True)

    def initialize(
        self, group_id: str, state_epoch: int, starts: Mapping[Place, int]
    ) -> Pending[dict[Place, int]]:
        """Begin the state of share partitions anew; return an error code for each.

        `starts` are start offsets; -1 leaves the decision to the first leader that loads the state.
        """
        from wire.schemas import initialize_share_group_state as api

        def build(places: Sequence[Place]) -> Request[Any]:
            return api.InitializeShareGroupStateRequest(
                group_id=group_id,
                topics=[
                    api.InitializeStateData(
                        topic_id=topic_id,
                        partitions=[
                            api.PartitionData(
                                partition=place[1],
                                state_epoch=state_epoch,
                                start_offset=starts[place],
                            )
                            for place in of_topic
                        ],
                    )
                    for topic_id, of_topic in by_topic(places)
                ],
            )

        return then(self._ask(group_id, starts, build), _codes)

    def read(self, group_id: str, place: Place, leader_epoch: int) -> Pending[ShareState]:
        """Return the stored state; leaders with a lower epoch are fenced from then on.

        The pending fails with the KafkaError of the coordinator: InvalidRequest if the state was
        never initialized, FencedLeaderEpoch if a later leader has read it.
        """
        from wire.schemas import read_share_group_state as api

        def build(places: Sequence[Place]) -> Request[Any]:
            row = api.PartitionData(partition=place[1], leader_epoch=leader_epoch)
            topic = api.ReadStateData(topic_id=place[0], partitions=[row])
            return api.ReadShareGroupStateRequest(group_id=group_id, topics=[topic])

        def state_of(answers: dict[Place, Any]) -> ShareState:
            row = _checked(answers[place])
            batches = [
                StateBatch(
                    first_offset=each.first_offset,
                    last_offset=each.last_offset,
                    delivery_state=each.delivery_state,
                    delivery_count=each.delivery_count,
                )
                for each in row.state_batches
            ]
            return ShareState(row.state_epoch, row.start_offset, batches)

        return then(self._ask(group_id, [place], build), state_of)

    def write(
        self,
        group_id: str,
        place: Place,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> Pending[None]:
        """Merge batches into the stored state. A start offset of -1 keeps the stored one.

        The pending fails with the KafkaError of the coordinator: InvalidRequest if the state was
        never initialized, FencedLeaderEpoch or FencedStateEpoch if an epoch is not the newest.
        """
        from wire.schemas import write_share_group_state as api

        def build(places: Sequence[Place]) -> Request[Any]:
            row = api.PartitionData(
                partition=place[1],
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                state_batches=[
                    api.StateBatch(
                        first_offset=each.first_offset,
                        last_offset=each.last_offset,
                        delivery_state=each.delivery_state,
                        delivery_count=each.delivery_count,
                    )
                    for each in batches
                ],
            )
            topic = api.WriteStateData(topic_id=place[0], partitions=[row])
            return api.WriteShareGroupStateRequest(group_id=group_id, topics=[topic])

        def check(answers: dict[Place, Any]) -> None:
            _checked(answers[place])

        return then(self._ask(group_id, [place], build), check)

    def delete(self, group_id: str, places: Iterable[Place]) -> Pending[dict[Place, int]]:
        """Delete the state of share partitions; return an error code for each."""
        from wire.schemas import delete_share_group_state as api

        def build(places: Sequence[Place]) -> Request[Any]:
            return api.DeleteShareGroupStateRequest(
                group_id=group_id,
                topics=[
                    api.DeleteStateData(
                        topic_id=topic_id,
                        partitions=[api.PartitionData(partition=place[1]) for place in of_topic],
                    )
                    for topic_id, of_topic in by_topic(places)
                ],
            )

        return then(self._ask(group_id, places, build), _codes)

    def summaries(
        self, group_id: str, places: Iterable[Place]
    ) -> Pending[dict[Place, ShareSummary]]:
        """Return the stored states without their batches."""
        from wire.schemas import read_share_group_state_summary as api

        def build(places: Sequence[Place]) -> Request[Any]:
            return api.ReadShareGroupStateSummaryRequest(
                group_id=group_id,
                topics=[
                    api.ReadStateSummaryData(
                        topic_id=topic_id,
                        partitions=[
                            api.PartitionData(partition=place[1], leader_epoch=0)
                            for place in of_topic
                        ],
                    )
                    for topic_id, of_topic in by_topic(places)
                ],
            )

        def summary_of(answer: Any) -> ShareSummary:
            if isinstance(answer, int):
                return ShareSummary(answer)
            if answer.error_code:
                return ShareSummary(answer.error_code)
            return ShareSummary(
                state_epoch=answer.state_epoch,
                leader_epoch=answer.leader_epoch,
                start_offset=answer.start_offset,
                delivery_complete_count=answer.delivery_complete_count,
            )

        return then(
            self._ask(group_id, places, build),
            lambda answers: {place: summary_of(answer) for place, answer in answers.items()},
        )

    def close(self) -> None:
        """Close: calls that wait for their next attempt end with their last error."""
        self._is_closed = True
        self._scheduler.remove(self._timer)
        for task in self._timer.tasks():
            assert isinstance(task, _NextAttempt), task
            task.cancel()
            task.call.end()

    # One call

    def _ask(
        self, group_id: str, places: Iterable[Place], build: Build
    ) -> Pending[dict[Place, Any]]:
        """Return for each place its row of the answer, or the error code of the failed attempts."""
        call = _Call(group_id, places, build)
        self._attempt(call)
        return call.pending

    def _attempt(self, call: _Call) -> None:
        call.attempt_count += 1
        by_node: dict[int, list[Place]] = {}
        for place in call.open_places():
            try:
                node = self._routes.node_of(key_text(call.group_id, place))
            except EmbedlogError as error:
                call.answers[place] = as_coordinator_error(error).code
            else:
                by_node.setdefault(node, []).append(place)
        parts: list[dict[Place, Any] | Pending[dict[Place, Any]]] = [
            self._send(call, node, places) for node, places in by_node.items()
        ]
        combined(parts, lambda answered: self._take(call, answered))

    def _send(self, call: _Call, node: int, places: list[Place]) -> Pending[dict[Place, Any]]:
        """Ask one broker. The pending does not fail: a failure is the answer of every place."""
        answer: Pending[Any] = Pending()
        rows: Pending[dict[Place, Any]] = Pending()

        def arrived(done: Pending[Any]) -> None:
            error = done.error()
            if error is None:
                rows.complete(_rows(places, done.result()))
            elif isinstance(error, EmbedlogError):
                rows.complete(dict.fromkeys(places, as_coordinator_error(error).code))
            else:
                rows.complete(dict.fromkeys(places, int(ErrorCode.UNKNOWN_SERVER_ERROR)))

        answer.add_callback(arrived)
        try:
            answer.follow(self._routes.send(node, call.build(places)))
        except EmbedlogError as error:
            answer.fail(error)
        return rows

    def _take(self, call: _Call, answered: list[dict[Place, Any]]) -> None:
        for answers in answered:
            call.answers.update(answers)
        if not call.open_places() or call.attempt_count >= _ATTEMPT_COUNT_MAX or self._is_closed:
            call.end()
        else:
            self._timer.add(_NextAttempt(self._pause_ms(call.attempt_count), call, self._attempt))

    def _pause_ms(self, attempt_count: int) -> int:
        pause_ms = min(_FIRST_PAUSE_MS << (attempt_count - 1), _PAUSE_MS_MAX)
        spread_ms = pause_ms * _JITTER_PERCENT // 100
        return pause_ms - spread_ms + self._random.below(2 * spread_ms + 1)


class _Call:
    """One call of the client: its places and the newest answer of each."""

    def __init__(self, group_id: str, places: Iterable[Place], build: Build) -> None:
        self.group_id = group_id
        self.build = build
        self.pending: Pending[dict[Place, Any]] = Pending()
        self.answers: dict[Place, Any] = dict.fromkeys(places, int(ErrorCode.NOT_COORDINATOR))
        """Place -> its row of a response, or an error code."""
        self.attempt_count = 0

    def open_places(self) -> list[Place]:
        """Return the places that another attempt may help."""
        return [place for place, answer in self.answers.items() if _code_of(answer) in _RETRIED]

    def end(self) -> None:
        self.pending.complete(self.answers)


class _NextAttempt(TimerTask):
    __slots__ = ("_attempt", "call")

    def __init__(self, delay_ms: int, call: _Call, attempt: Callable[[_Call], None]) -> None:
        super().__init__(delay_ms)
        self.call = call
        self._attempt = attempt

    def run(self) -> None:
        self._attempt(self.call)


def _rows(places: Sequence[Place], response: Any) -> dict[Place, Any]:
    """Return the rows of a response by place. A place without a row has an error."""
    rows: dict[Place, Any] = dict.fromkeys(places, int(ErrorCode.UNKNOWN_SERVER_ERROR))
    for topic in response.results:
        for row in topic.partitions:
            rows[topic.topic_id, row.partition] = row
    return rows


def _code_of(answer: Any) -> int:
    return answer if isinstance(answer, int) else answer.error_code


def _codes(answers: dict[Place, Any]) -> dict[Place, int]:
    return {place: _code_of(answer) for place, answer in answers.items()}


def _checked(answer: Any) -> Any:
    """Return the row of an answer; raise its error if it has one."""
    code = _code_of(answer)
    if code:
        raise errors.error_for(code, "" if isinstance(answer, int) else answer.error_message or "")
    return answer
