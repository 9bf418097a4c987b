"""Careful clients over raw requests: writers, copiers and readers.

They are generators like the members of groups: each yields a request or a pause. After a lost
answer they repeat the request, as clients do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.golden.transaction_requests import add, batch, end, init, txn_commit
from tests.simulation.actor import Actor as LivingActor
from tests.simulation.actor import ActorsWorld, Steps
from tests.simulation.transactions.history import (
    ABORTED,
    COMMITTED,
    REFUSED,
    UNKNOWN,
    History,
    Place,
    Read,
    Transaction,
    copy_of,
)
from tests.simulation.world import Ask, Life, Sleep
from wire.error_codes import ErrorCode
from wire.records import iter_batches
from wire.records.batch import RecordBatch
from wire.records.control import ControlType, control_type_of
from wire.records.decode.choose import tuples
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

Producer = tuple[int, int]

SOURCE, TARGET = "in", "out"
PARTITIONS = {SOURCE: 2, TARGET: 2}
GROUP = "copiers"
TIMEOUT_MS = 4000
RETRY_MS = 40
TRIES_MAX = 400
FETCH_BYTES = 1 << 20
FETCH_VERSION = 12
_TRY_AGAIN = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)


class Actor(LivingActor):
    """An actor that repeats its requests until it has an answer, and records the outcome."""

    def __init__(self, world: ActorsWorld, history: History, name: str) -> None:
        self.history = history
        super().__init__(world, name)

    def ask(self, request: Any, version: int, code_of: Any) -> Steps:
        """Repeat a request until its answer is final. Return (answer, whether one was lost).

        The answer is None if none came after all tries.
        """
        was_lost = False
        for _ in range(TRIES_MAX):
            answer = yield Ask(request, version)
            if answer is not None and code_of(answer) not in _TRY_AGAIN:
                return answer, was_lost
            was_lost |= answer is None
            yield Sleep(RETRY_MS)
        return None, True


class Transactional(Actor):
    """A transactional producer. `bumps`: of transaction version 2, in which every end raises the
    epoch.
    """

    def __init__(
        self, world: ActorsWorld, history: History, name: str, transactional_id: str, *, bumps: bool
    ) -> None:
        self.transactional_id = transactional_id
        self.bumps = bumps
        self.producer: Producer = (-1, -1)
        self._sequences: dict[Place, int] = {}
        self._added: set[Place] = set()
        super().__init__(world, history, name)

    def begin(self) -> Steps:
        """Take over the transactional id from its last owner; return False if that fails."""
        request = init(self.transactional_id, timeout_ms=TIMEOUT_MS)
        answer, _ = yield from self.ask(request, 5, lambda answer: answer.error_code)
        if answer is None or answer.error_code:
            return False
        self._becomes((answer.producer_id, answer.producer_epoch))
        return True

    def _becomes(self, producer: Producer) -> None:
        if producer != self.producer:
            self.producer = producer
            self._sequences.clear()

    def write(self, transaction: Transaction, place: Place, value: str) -> Steps:
        """Write one record; return False if it is refused."""
        transaction.values.append(value)
        if not self.bumps and place not in self._added:
            request = add(self.transactional_id, self.producer, (place[0], place[1]))
            answer, _ = yield from self.ask(request, 3, _added_code)
            if answer is None or _added_code(answer):
                return False
        self._added.add(place)
        sequence = self._sequences.get(place, 0)
        data = batch(self.producer, value.encode(), sequence=sequence)
        produce = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=5000,
            topic_data=[
                TopicProduceData(
                    name=place[0],
                    partition_data=[PartitionProduceData(index=place[1], records=data)],
                )
            ],
        )
        version = 12 if self.bumps else 9
        answer, _ = yield from self.ask(produce, version, _produced_code)
        if answer is None or _produced_code(answer):
            return False
        self._sequences[place] = sequence + 1
        return True

    def finish(self, transaction: Transaction, *, is_committed: bool) -> Steps:
        """End the transaction; return False if this epoch is of no more use."""
        added, self._added = self._added, set()
        if not added and not self.bumps:
            transaction.outcome = ABORTED
            return True
        request = end(self.transactional_id, self.producer, commit=is_committed)
        transaction.is_commit_sent |= is_committed
        version = 5 if self.bumps else 4
        answer, was_lost = yield from self.ask(request, version, lambda answer: answer.error_code)
        if answer is None or answer.error_code:
            transaction.outcome = UNKNOWN if was_lost else REFUSED
            return False
        transaction.outcome = COMMITTED if is_committed else ABORTED
        if self.bumps:
            self._becomes((answer.producer_id, answer.producer_epoch))
        return True


class Writer(Transactional):
    """Writes to the source topic, in transactions of a few records; aborts one in four."""

    def life(self) -> Life:
        """Write until it is fenced, or has written all transactions."""
        random = self.world.random
        if not (yield from self.begin()):
            return
        for number in range(random.randrange(2, 7)):
            transaction = Transaction(f"{self.name}.{number}")
            self.history.transactions.append(transaction)
            is_written = True
            for index in range(random.randrange(1, 5)):
                place = SOURCE, random.randrange(PARTITIONS[SOURCE])
                value = f"{transaction.name}.{index}"
                is_written = yield from self.write(transaction, place, value)
                if not is_written:
                    break
                yield Sleep(random.randrange(60))
            is_committed = is_written and random.random() < 0.75
            is_over = not (yield from self.finish(transaction, is_committed=is_committed))
            if is_over and (random.random() < 0.5 or not (yield from self.begin())):
                return
            yield Sleep(random.randrange(200))


class Copier(Transactional):
    """Copies the source to the target: records and offsets in one transaction."""

    is_told_to_end = False
    """If set, the copier ends at the end of the source."""

    def life(self) -> Life:
        """Copy until it is fenced, or has to end."""
        random = self.world.random
        if not (yield from self.begin()):
            return
        for number in range(10_000):
            positions = yield from self._positions()
            if positions is None:
                return
            found = []
            for index in range(PARTITIONS[SOURCE]):
                place = SOURCE, index
                rows, position = yield from fetched(self, place, positions[index])
                if rows:
                    found = rows[: random.randrange(1, 6)]
                    position = found[-1][0] + 1 if len(found) < len(rows) else position
                    break
            if not found:
                if self.is_told_to_end:
                    return
                yield Sleep(300)
                continue
            transaction = Transaction(f"{self.name}.{number}")
            # Other copiers write the same values, so the copies are checked together.
            is_written = True
            for _, value in found:
                to = TARGET, random.randrange(PARTITIONS[TARGET])
                is_written = is_written and (yield from self.write(transaction, to, copy_of(value)))
            if is_written:
                is_written = yield from self._commit(place, position)
            is_committed = is_written and random.random() < 0.8
            is_over = not (yield from self.finish(transaction, is_committed=is_committed))
            if is_over and not (yield from self.begin()):
                return

    def _positions(self) -> Steps:
        wanted = OffsetFetchRequestTopics(name=SOURCE, partition_indexes=[0, 1])
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=[wanted])
        request = OffsetFetchRequest(groups=[group], require_stable=True)

        def code_of(answer: Any) -> int:
            (found,) = answer.groups
            codes = [p.error_code for topic in found.topics for p in topic.partitions]
            return found.error_code or next((code for code in codes if code), 0)

        answer, _ = yield from self.ask(request, 9, code_of)
        if answer is None or code_of(answer):
            return None
        (topic,) = answer.groups[0].topics
        return {p.partition_index: max(0, p.committed_offset) for p in topic.partitions}

    def _commit(self, place: Place, position: int) -> Steps:
        if not self.bumps:
            from tests.golden.transaction_requests import add_offsets

            request: Any = add_offsets(self.transactional_id, self.producer, GROUP)
            answer, _ = yield from self.ask(request, 3, lambda answer: answer.error_code)
            if answer is None or answer.error_code:
                return False
        self._added.add(place)
        version = 5 if self.bumps else 3
        request = txn_commit(
            self.transactional_id,
            self.producer,
            GROUP,
            (SOURCE, b""),
            (place[1], position),
            version=version,
        )

        def code_of(answer: Any) -> int:
            code: int = answer.topics[0].partitions[0].error_code
            return code

        answer, _ = yield from self.ask(request, version, code_of)
        return answer is not None and not code_of(answer)


class Reader(Actor):
    """Reads committed records of every partition again and again, and records them."""

    def life(self) -> Life:
        """Read until the world ends."""
        positions = {(topic, n): 0 for topic, count in PARTITIONS.items() for n in range(count)}
        while True:
            for place, position in positions.items():
                _, positions[place] = yield from fetched(self, place, position)
            yield Sleep(self.world.random.randrange(50, 400))


def fetched(actor: Actor, place: Place, position: int) -> Steps:
    """Return ([(offset, value)], next position) of one fetch with read_committed."""
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=FETCH_BYTES,
        isolation_level=1,
        topics=[
            FetchTopic(
                topic=place[0],
                partitions=[
                    FetchPartition(
                        partition=place[1], fetch_offset=position, partition_max_bytes=FETCH_BYTES
                    )
                ],
            )
        ],
    )
    answer, _ = yield from actor.ask(request, FETCH_VERSION, _fetched_code)
    if answer is None or _fetched_code(answer):
        return [], position
    (found,) = answer.responses[0].partitions
    rows = list(_committed(found, position))
    for offset, value in rows:
        read = Read(actor.name, place, offset, value, found.last_stable_offset)
        actor.history.reads.append(read)
    return rows, max([position, *(batch.last_offset + 1 for batch in _batches(found))])


def _batches(found: Any) -> Iterator[RecordBatch]:
    for each in iter_batches(bytes(found.records or b"")):
        assert isinstance(each, RecordBatch)
        yield each


def _committed(found: Any, position: int) -> Iterator[tuple[int, str]]:
    """Return the records that a client hands out: section 9 of the fact sheet."""
    aborted = sorted((a.first_offset, a.producer_id) for a in found.aborted_transactions or ())
    gone: set[int] = set()
    for each in _batches(found):
        while aborted and aborted[0][0] <= each.last_offset:
            gone.add(aborted.pop(0)[1])
        if each.is_control:
            if control_type_of(each) == ControlType.ABORT:
                gone.discard(each.producer_id)
            continue
        if each.is_transactional and each.producer_id in gone:
            continue
        for offset, _, _, value, _ in tuples(each):
            if offset >= position:
                yield offset, bytes(value or b"").decode()


def _added_code(answer: Any) -> int:
    code: int = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
    return code


def _produced_code(answer: Any) -> int:
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def _fetched_code(answer: Any) -> int:
    code: int = answer.responses[0].partitions[0].error_code
    return code
