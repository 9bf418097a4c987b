"""Writers of the partitions that the group shares: plain ones, and transactional ones."""

from __future__ import annotations

from typing import Any

from tests.simulation.actor import Actor
from tests.simulation.cluster.client import Client, Place
from tests.simulation.share.world import PLACES
from tests.simulation.transactions.actors import Transactional
from tests.simulation.transactions.history import History, Transaction
from tests.simulation.world import Ask, Life, Sleep
from wire.records import build_batch
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

RETRY_MS = 100
TIMESTAMP = 1_700_000_000_000
KEYS = (b"a", None, b"b")


class Writer(Actor):
    """Writes some batches; after an error again, so that a record may exist twice."""

    def __init__(
        self, client: Client, name: str, count: int, places: tuple[Place, ...] = PLACES
    ) -> None:
        self._count = count
        self._places = places
        super().__init__(client, name)

    def life(self) -> Life:
        """Write the batches."""
        random = self.world.random
        for number in range(self._count):
            place = self._places[number % len(self._places)]
            values = [f"{self.name}.{number}".encode()] * random.choice((1, 2, 5, 8))
            keys = [KEYS[(number + index) % len(KEYS)] for index in range(len(values))]
            while True:
                answer = yield Ask(_produce(place, values, keys), 9)
                if answer is not None and not _code(answer):
                    break
                yield Sleep(RETRY_MS)
            yield Sleep(random.randrange(150))


class TransactionWriter(Transactional):
    """Writes in transactions and aborts half of them."""

    def __init__(self, client: Client, name: str, transactional_id: str) -> None:
        super().__init__(client, History(), name, transactional_id, bumps=True)

    def life(self) -> Life:
        """Write until it is fenced, or has written all transactions."""
        random = self.world.random
        if not (yield from self.begin()):
            return
        for number in range(random.randrange(2, 5)):
            transaction = Transaction(f"{self.name}.{number}")
            for index in range(random.randrange(1, 5)):
                place = random.choice(PLACES)
                value = f"{transaction.name}.{index}"
                if not (yield from self.write(transaction, place, value)):
                    return
            is_committed = random.random() < 0.5
            if not (yield from self.finish(transaction, is_committed=is_committed)):
                return
            yield Sleep(random.randrange(300))


def _produce(place: Place, values: list[bytes], keys: list[bytes | None]) -> ProduceRequest:
    records = build_batch(values, keys=keys, timestamps=TIMESTAMP)
    data = PartitionProduceData(index=place[1], records=records)
    return ProduceRequest(
        acks=-1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=place[0], partition_data=[data])],
    )


def _code(answer: Any) -> int:
    code: int = answer.responses[0].partition_responses[0].error_code
    return code
