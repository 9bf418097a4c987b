"""Our own clients in a story: a producer that blocks while faults happen, and a consumer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from embedlog.errors import EmbedlogError
from tests.simulation.cluster.client import Place
from tests.simulation.cluster.history import ACKED, ONE, History, View, Written
from tests.simulation.cluster.logs import Row
from tests.simulation.cluster.watch import ALL
from tests.simulation.cluster.world import ClusterWorld

RECORDS_MAX = 4
READS_MAX = 40
READ_MS = 200


class OwnClients:
    """Our producer and consumer. Each write and each read makes a new client, which
    keeps no state.
    """

    def __init__(self, world: ClusterWorld, history: History, random: Random) -> None:
        self._world = world
        self._history = history
        self._random = random

    def write(self, name: str, place: Place, say: Callable[[str], None]) -> None:
        """Write some records, one by one or together, and close the producer."""
        acks = self._random.choice((ALL, ALL, ONE))
        is_idempotent = acks == ALL and self._random.random() < 0.7
        together = self._random.random() < 0.5
        say(f"{name} begins, acks={acks}" + (", idempotent" if is_idempotent else ""))
        producer = self._world.cluster.producer(
            acks="all" if acks == ALL else "1",
            enable_idempotence=is_idempotent,
            delivery_timeout_ms=6000,
            request_timeout_ms=1500,
            max_block_ms=4000,
        )
        futures = []
        for number in range(self._random.randrange(1, RECORDS_MAX + 1)):
            each = Written(f"{name}.{number}", name, place, acks=acks, is_idempotent=is_idempotent)
            self._history.written.append(each)
            try:
                future = producer.send(place[0], each.value.encode(), partition=place[1])
            except EmbedlogError as error:
                say(f"{each.value}: {error!r}")
                continue
            futures.append((each, future))
            if not together:
                self._settle(*futures.pop(), say)
        for each, future in futures:
            self._settle(each, future, say)
        producer.close(timeout=1)
        say(f"{name} ends")

    def _settle(self, each: Written, future: object, say: Callable[[str], None]) -> None:
        try:
            found = future.result()  # type: ignore[attr-defined]
        except EmbedlogError as error:
            say(f"{each.value}: {error!r}")
            return
        each.outcome = ACKED
        each.offset = found.offset

    def read_all(self) -> None:
        """Read everything from the beginning with a consumer, when the brokers are at rest."""
        for place in self._history.watch.partitions:
            view = View("own reader", place)
            self._history.views.append(view)
            end = max(each.position for each in self._history.views)
            with self._world.cluster.consumer(auto_offset_reset="earliest") as consumer:
                consumer.assign([place])
                for _ in range(READS_MAX):
                    for record in consumer.poll(READ_MS):
                        row = Row(record.offset, record.leader_epoch, record.value.decode())
                        view.rows.append(row)
                        view.position = record.offset + 1
                    if view.position >= end:
                        break
