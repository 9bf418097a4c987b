"""Clients that share no code with ours: they send raw requests and have their own retries.

writer     writes one batch after the other, idempotent or not, with acks=all or acks=1
reader     reads all partitions from the leader or any replica. It checks by leader epochs (KIP-320)
           that its records still exist, and drops the others
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.golden.transaction_requests import Producer, init
from tests.simulation.actor import Actor, Steps
from tests.simulation.cluster.client import Client, Place, error_in
from tests.simulation.cluster.history import ACKED, REFUSED, History, Read, View, Written
from tests.simulation.cluster.logs import rows_of
from tests.simulation.cluster.world import NODES
from tests.simulation.world import Ask, Life, Sleep
from wire.error_codes import ErrorCode
from wire.records import build_batch
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.schemas.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

NO_PRODUCER: Producer = (-1, -1)
TIMESTAMP = 1_700_000_000_000
PRODUCE_VERSION = 9
FETCH_VERSION = 12
EPOCHS_VERSION = 4
PRODUCE_TIMEOUT_MS = 1000
RETRY_MS = 40
TRIES_MAX = 60
FETCH_BYTES = 1 << 20

_NOTHING_WRITTEN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)
"""This request did not append the batch, which may be sent again."""
_PERHAPS_WRITTEN = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
_LOST_TOUCH = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})
"""The leader lacks an earlier batch of the producer."""


class ClusterActor(Actor):
    """An actor with its own client."""

    def __init__(self, client: Client, history: History, name: str) -> None:
        self.client = client
        self.history = history
        super().__init__(client, name)


class Writer(ClusterActor):
    """Writes some batches to one partition."""

    def __init__(
        self,
        client: Client,
        history: History,
        name: str,
        place: Place,
        *,
        acks: int,
        is_idempotent: bool,
    ) -> None:
        self.place = place
        self.acks = acks
        self.is_idempotent = is_idempotent
        super().__init__(client, history, name)

    def life(self) -> Life:
        """Write until all batches are sent, or an error is final."""
        random = self.client.random
        producer = NO_PRODUCER
        sequence = 0
        for number in range(random.randrange(1, 10)):
            if self.is_idempotent and producer == NO_PRODUCER:
                producer = yield from self._begin()
                sequence = 0
            count = random.randrange(1, 4)
            written = [
                Written(
                    f"{self.name}.{number}.{index}",
                    self.name,
                    self.place,
                    acks=self.acks,
                    is_idempotent=self.is_idempotent,
                )
                for index in range(count)
            ]
            self.history.written += written
            code = yield from self._write(written, producer, sequence)
            if code is None:
                return
            if code in _LOST_TOUCH:
                self.history.lost_touch.append((self.name, self.client.now))
                producer = NO_PRODUCER
            sequence += count
            yield Sleep(random.randrange(500))

    def _begin(self) -> Steps:
        while True:
            answer = yield Ask(init(None), 4)
            if answer is not None and not answer.error_code:
                return answer.producer_id, answer.producer_epoch
            yield Sleep(RETRY_MS)

    def _write(self, written: list[Written], producer: Producer, sequence: int) -> Steps:
        """Write a batch. Return its final error code (0, or an error that needs a new producer id),
        or None to give up.
        """
        records = build_batch(
            [each.value.encode() for each in written],
            timestamps=TIMESTAMP,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence if producer != NO_PRODUCER else -1,
        )
        topic, index = self.place
        data = [PartitionProduceData(index=index, records=records)]
        request = ProduceRequest(
            acks=self.acks,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[TopicProduceData(name=topic, partition_data=data)],
        )
        is_sure = True
        for _ in range(TRIES_MAX):
            answer = yield Ask(request, PRODUCE_VERSION)
            found = None if answer is None else answer.responses[0].partition_responses[0]
            if found is not None and not found.error_code:
                for number, each in enumerate(written):
                    each.outcome = ACKED
                    each.offset = found.base_offset + number
                    each.epoch = self.history.watch.epochs[id(request)]
                return 0
            if found is not None and found.error_code in _LOST_TOUCH:
                return found.error_code
            if found is None or found.error_code in _PERHAPS_WRITTEN:
                is_sure = False
            elif found.error_code not in _NOTHING_WRITTEN:
                raise AssertionError(f"{self.name}: {found}")
            yield Sleep(RETRY_MS)
        if is_sure:
            for each in written:
                each.outcome = REFUSED
        return None


class Reader(ClusterActor):
    """Reads one partition until the world ends; from followers as well if `anywhere` is true."""

    def __init__(
        self, client: Client, history: History, name: str, place: Place, *, anywhere: bool
    ) -> None:
        self.place = place
        self.anywhere = anywhere
        self.view = View(name, place)
        history.views.append(self.view)
        super().__init__(client, history, name)

    def life(self) -> Life:
        """Validate and read in turn, without end."""
        random = self.client.random
        while True:
            epoch = yield from self._epoch()
            if epoch != self.view.epoch and (yield from self._validate(epoch)):
                self.view.epoch = epoch
            if epoch == self.view.epoch:
                yield from self._read(epoch)
            yield Sleep(random.randrange(30, 300))

    def _epoch(self) -> Steps:
        """Return the leader epoch, from a metadata request if the client knows none."""
        if self.place not in self.client.leaders:
            yield partial(self.client.look_up, ("leader", self.place))
        return self.client.leaders[self.place][1]

    def _validate(self, epoch: int) -> Steps:
        """Drop the records that the leader of this epoch lacks; return False if it does
        not answer.
        """
        view = self.view
        while view.rows:
            last = view.rows[-1]
            topic, index = self.place
            asked = OffsetForLeaderPartition(
                partition=index, current_leader_epoch=epoch, leader_epoch=last.epoch
            )
            answer = yield Ask(
                OffsetForLeaderEpochRequest(
                    replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])]
                ),
                EPOCHS_VERSION,
            )
            if answer is None or error_in(answer):
                return False
            found = answer.topics[0].partitions[0]
            kept = [
                row
                for row in view.rows
                if row.offset < found.end_offset and row.epoch <= found.leader_epoch
            ]
            view.position = min(view.position, max(found.end_offset, 0))
            dropped = [row for row in view.rows if row not in kept]
            if dropped:
                view.cuts += 1
                # A later epoch may have other records at offsets below the end of the earlier
                # epoch.
                view.position = min(view.position, dropped[0].offset)
            is_settled = found.leader_epoch == last.epoch or not kept
            view.rows = kept
            if is_settled:
                return True
        return True

    def _read(self, epoch: int) -> Steps:
        view = self.view
        topic, index = self.place
        partition = FetchPartition(
            partition=index,
            current_leader_epoch=epoch,
            fetch_offset=view.position,
            partition_max_bytes=FETCH_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=self.client.random.choice((0, 200)),
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            topics=[FetchTopic(topic=topic, partitions=[partition])],
        )
        what: Any = Ask(request, FETCH_VERSION)
        if self.anywhere:
            node_id = self.client.random.choice(NODES)
            what = partial(self.client.send, node_id, what)
        answer = yield what
        if answer is None:
            self.client.forget(("leader", self.place))
            return
        (found,) = answer.responses[0].partitions
        if found.error_code:
            self.client.forget(("leader", self.place))
            if found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                # A follower had sent records that it truncated later, as its leader lost them.
                view.epoch = -1
            return
        for row in rows_of(bytes(found.records or b"")):
            if row.offset < view.position:
                continue
            view.rows.append(row)
            self.history.reads.append(Read(self.name, self.place, row, found.high_watermark))
            view.position = row.offset + 1
