"""Three brokers, and a record of all that the members of a share group and the leaders say."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from embedlog.broker.context import RequestContext
from embedlog.replication.partition import Partition
from embedlog.runtime.pending import Pending
from embedlog.testing import SimulatedCrash
from tests.simulation.cluster.client import Place
from tests.simulation.cluster.watch import Watch
from tests.simulation.cluster.world import SETTINGS, ClusterWorld
from tests.simulation.share.history import Delivery, Described, Ending, History, Said, Span
from tests.simulation.world import Ask
from wire.schema import declaration
from wire.schemas.delete_records import DeleteRecordsRequest
from wire.schemas.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from wire.schemas.share_acknowledge import ShareAcknowledgeRequest
from wire.schemas.share_fetch import ShareFetchRequest

GROUP = "workers"
TOPIC = "events"
PARTITION_COUNT = 2
LETTERS = "dlq.letters"
PLACES: tuple[Place, ...] = tuple((TOPIC, index) for index in range(PARTITION_COUNT))
LOCK_MS = 2000
SHARE_SETTINGS: dict[str, Any] = {
    **SETTINGS,
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.record.lock.duration.ms": LOCK_MS,
    "group.share.assignment.interval.ms": 0,
    "group.share.min.assignment.interval.ms": 0,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.snapshot.update.records.per.snapshot": 5,
}


class Wire:
    """A connection of a member to a broker."""

    def close(self) -> None:
        """The broker breaks it: nobody listens."""


@dataclass(frozen=True, slots=True)
class Wired(Ask):
    """A request over a connection, which the broker knows."""

    connection: Wire


class Recorder(Watch):
    """Observes the brokers, and writes the history."""

    def __init__(self, places: list[Place], history: History) -> None:
        super().__init__(places)
        self.history = history
        self.topic_id = b""
        self._order = itertools.count(1)
        self._asked: dict[int, tuple[Any, Span, dict[Place, Any], list[tuple[Place, Said]]]] = {}
        self._terms: dict[int, Any] = {}
        self._numbers = itertools.count()
        self.clock: Any = None

    def now(self) -> tuple[int, int]:
        """Return the next order number, and the time."""
        return next(self._order), self.clock.now

    def look(self) -> None:
        """Leave the logs alone: their beginnings may be deleted."""

    def node(self, node_id: int, place: Place) -> Partition | None:
        """Return a broker's replica; None if it has none, or does not run."""
        return super().node(node_id, place) if self.is_up(node_id) else None

    def _is_safe(self, place: Place, offset: int) -> bool:
        return len(self._cluster.brokers) == 1 or super()._is_safe(place, offset)

    def ended(self, member: str) -> None:
        """A session of the member ends now."""
        self.history.endings.append(Ending(member, self.now()[0]))

    def _term(self, node_id: int, place: Place) -> Any:
        if not self.is_up(node_id):
            return None
        node = self._cluster.broker(node_id)
        return node.core.sharing.find(GROUP, (self.topic_id, place[1]))

    def is_up(self, node_id: int) -> bool:
        """Return whether the broker exists and runs."""
        nodes = {node.node_id: node for node in self._cluster.brokers}
        return node_id in nodes and nodes[node_id].is_running

    def _number(self, term: Any) -> int | None:
        """Return the number of a share partition in memory."""
        if term is None:
            return None
        for number, each in self._terms.items():
            if each is term:
                return number
        number = next(self._numbers)
        self._terms[number] = term
        return number

    def arrived(self, node_id: int, request: Any) -> None:
        """A request has come to a broker."""
        if isinstance(request, DeleteRecordsRequest):
            (topic,) = request.topics
            for each in topic.partitions:
                place = topic.name, each.partition_index
                self.history.cut[place] = max(self.history.cut.get(place, 0), each.offset)
        if not self.is_up(node_id) or not isinstance(
            request, ShareFetchRequest | ShareAcknowledgeRequest
        ):
            return
        member = request.member_id or ""
        if request.share_session_epoch == -1:
            self.ended(member)
        span = Span(*self.now())
        terms = {place: self._term(node_id, place) for place in PLACES}
        said: list[tuple[Place, Said]] = []
        for topic in request.topics:
            for row in topic.partitions:
                types = _types(row)
                if types:
                    place = TOPIC, row.partition_index
                    each = Said(place, member, types, span, self._number(terms[place]))
                    said.append((place, each))
                    self.history.said.append(each)
        self._asked[id(request)] = request, span, terms, said
        if isinstance(request, ShareFetchRequest):
            self.history.unanswered += 1

    def answered(self, node_id: int, request: Any, answer: Any) -> None:
        """A broker has answered."""
        super().answered(node_id, request, answer)
        if isinstance(request, DescribeShareGroupOffsetsRequest):
            self._described(answer)
        if id(request) not in self._asked:
            return
        _, span, terms, said = self._asked.pop(id(request))
        span.done, span.done_ms = self.now()
        is_fetch = isinstance(request, ShareFetchRequest)
        self.history.unanswered -= is_fetch
        rows = {
            (TOPIC, row.partition_index): row
            for topic in answer.responses
            for row in topic.partitions
        }
        for place, each in said:
            row = rows.get(place)
            if answer.error_code or row is None:
                each.code = answer.error_code or 121
            else:
                each.code = row.acknowledge_error_code if is_fetch else row.error_code
        if is_fetch:
            for place, row in rows.items():
                # The request itself may have loaded the share partition.
                term = self._term(node_id, place)
                is_same = term is terms[place] or (terms[place] is None and not said)
                number = self._number(term) if is_same else None
                for got in row.acquired_records:
                    delivery = Delivery(
                        place,
                        request.member_id,
                        got.first_offset,
                        got.last_offset,
                        got.delivery_count,
                        span,
                        number,
                    )
                    self.history.deliveries.append(delivery)

    def _described(self, answer: Any) -> None:
        for group in answer.groups:
            for topic in group.topics:
                for row in topic.partitions:
                    if not row.error_code and row.start_offset >= 0:
                        place = topic.topic_name, row.partition_index
                        done, _ = self.now()
                        self.history.described.append(Described(place, row.start_offset, done))


class ShareWorld(ClusterWorld):
    """Brokers whose share groups are recorded."""

    settings = SHARE_SETTINGS

    def __init__(self, seed: int, recorder: Recorder, *, broker_count: int) -> None:
        self.broker_count = broker_count
        self._recorder = recorder
        recorder.clock = self
        super().__init__(seed, recorder)

    def crash_soon(self, calls: int) -> None:
        """Let the process of all brokers die at one of its next file calls."""
        files = self.runtime.files
        files.crash(files.calls + calls)

    def run(self, delay_ms: int) -> None:
        """Let time pass. A process that dies is started again at once."""
        end = self.now + delay_ms
        while (left_ms := end - self.now) > 0:
            self.perform(lambda left_ms=left_ms: super(ShareWorld, self).run(left_ms))

    def perform(self, action: Callable[[], None]) -> None:
        """Do something during which the process may die."""
        try:
            action()
        except SimulatedCrash:
            self.die()

    def hang_up(self, node_id: int, connection: Wire, member: str) -> None:
        """Close a member's connection to a broker."""
        if self._answers(node_id):
            self._recorder.ended(member)
            core: Any = self.cluster.broker(node_id).core
            core.parked.connection_closed(connection)

    def _hand_over(self, node_id: int, what: Ask) -> Pending[Any]:
        self._recorder.arrived(node_id, what.request)
        if not isinstance(what, Wired) or not self._answers(node_id):
            return super()._hand_over(node_id, what)
        key = declaration(type(what.request)).api
        assert key is not None
        connection: Any = what.connection
        context = RequestContext(key, what.version, connection=connection, in_process=False)
        answer = self.cluster.broker(node_id).core.handle(context, what.request)
        if isinstance(answer, Pending):
            return answer
        done: Pending[Any] = Pending()
        done.complete(answer)
        return done

    def _answers(self, node_id: int) -> bool:
        """Return whether the broker runs and is not paused."""
        if not self._recorder.is_up(node_id):
            return False
        return self.broker_count == 1 or not self.cluster.broker(node_id).is_paused


def _types(row: Any) -> dict[int, int]:
    """Return the types of an entry by offset."""
    found: dict[int, int] = {}
    for batch in row.acknowledgement_batches:
        kinds = batch.acknowledge_types
        for index, offset in enumerate(range(batch.first_offset, batch.last_offset + 1)):
            if kinds:
                found[offset] = kinds[0] if len(kinds) == 1 else kinds[min(index, len(kinds) - 1)]
    return found
