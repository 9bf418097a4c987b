"""Many connections with random mixtures of requests for every kind of answer."""

from __future__ import annotations

import queue
import random
import threading

import pytest

from tests.wire.net.serving import Client, Echo, framed, request, serve
from wire.net.connection import Connection
from wire.net.limits import ListenerLimits

SIZES = (0, 10, 3_000, 70_000, 300_000)
KINDS = "now late none late-none pieces"
CONNECTION_COUNT = 12
REQUEST_COUNT = 60


class Obedient(Echo):
    """Obeys each request: the kind and size of its answer, then padding."""

    def __init__(self) -> None:
        super().__init__()
        self.late: queue.SimpleQueue[tuple[Connection, bytes | None] | None] = queue.SimpleQueue()
        self.in_flight: set[int] = set()
        self.overlaps = 0
        self.answer = self._obey

    def _obey(
        self, connection: Connection, frame: bytes | memoryview
    ) -> list[bytes | bytearray | memoryview] | None:
        self.overlaps += connection.peer_port in self.in_flight
        head = bytes(frame[2:66]).split(b" ")
        kind, number, size = head[0].decode(), head[1], int(head[2])
        body = number + b":" + b"x" * size
        if kind == "now":
            return [framed(body)]
        if kind == "pieces":
            return [framed(body)[:4], memoryview(body)[:1], memoryview(body)[1:]]
        if kind == "none":
            return []
        self.in_flight.add(connection.peer_port)
        self.late.put((connection, body if kind == "late" else None))
        return None


def answer_late(service: Obedient, seed: int) -> None:
    """Answer parked requests in random order until the test stops."""
    rng = random.Random(seed)
    waiting: list[tuple[Connection, bytes | None]] = []
    while True:
        if not waiting or (rng.random() < 0.5 and not service.late.empty()):
            found = service.late.get()
            if found is None:
                return
            waiting.append(found)
            continue
        connection, body = waiting.pop(rng.randrange(len(waiting)))
        service.in_flight.discard(connection.peer_port)
        connection.respond(None if body is None else [framed(body)])


def talk(client: Client, seed: int, failures: list[str]) -> None:
    """Send random requests from another thread, in random pieces; check every answer."""
    rng = random.Random(seed)
    expected: list[bytes] = []
    data = bytearray()
    for number in range(REQUEST_COUNT):
        kind, size = rng.choice(KINDS.split()), rng.choice(SIZES)
        if number == REQUEST_COUNT - 1:
            kind = "now"  # so that the client sees the end after all answers
        text = b"%s %d %d " % (kind.encode(), number, size)
        data += request(text.ljust(64, b".") + b"y" * rng.choice(SIZES), key=0)
        if kind not in {"none", "late-none"}:
            expected.append(b"%d:" % number + b"x" * size)

    def send() -> None:
        rest = bytes(data)
        while rest:
            size = rng.choice([1, 100, 5_000, 65_540, 400_000])
            client.send(rest[:size])
            rest = rest[size:]

    sender = threading.Thread(target=send)
    sender.start()
    for answer in expected:
        if client.receive_frame() != answer:
            failures.append(f"seed {seed}: not {answer[:20]!r}")
            break
    sender.join()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_every_answer_arrives_once_and_in_order(seed: int) -> None:
    service = Obedient()
    failures: list[str] = []
    limits = ListenerLimits(receive_size_max=500_000)
    with serve(service, limits=limits) as served:
        answering = threading.Thread(target=answer_late, args=(service, seed))
        answering.start()
        clients = [
            served.connect_narrow() if number % 3 == 0 else served.connect()
            for number in range(CONNECTION_COUNT)
        ]
        talking = [
            threading.Thread(target=talk, args=(client, seed * 100 + number, failures))
            for number, client in enumerate(clients)
        ]
        for thread in talking:
            thread.start()
        for thread in talking:
            thread.join()
        service.late.put(None)
        answering.join()
        assert failures == []
        assert service.overlaps == 0, "two requests of one connection in flight"
        served.disconnect()
        for client in clients:
            service.wait_for_end_of(client)
        served.settle()
        assert served.listener.memory.held_size == 0
        assert served.listener.unread.size == 0
        assert not served.listener.memory.starved
