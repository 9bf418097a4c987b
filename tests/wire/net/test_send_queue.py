"""Writing buffers to a socket that takes any number of bytes."""

from __future__ import annotations

import random

import pytest

from wire.net.send_queue import SendQueue


class Picky:
    """A socket that takes a limited number of bytes per call, and sometimes none."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.taken = bytearray()

    def send(self, data: bytes) -> int:
        return self.sendmsg([data])

    def sendmsg(self, buffers: list[bytes]) -> int:
        assert len(buffers) <= 1024, "more buffers than the system allows"
        data = b"".join(buffers)
        size = self._rng.choice([0, 1, 7, 1_000, 70_000, len(data)])
        if size == 0:
            raise BlockingIOError
        self.taken += data[:size]
        return min(size, len(data))


SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_byte_is_written_once_and_in_order(seed: int) -> None:
    rng = random.Random(seed)
    queue, sock, expected = SendQueue(), Picky(seed), bytearray()
    for _ in range(20):
        count, sizes = rng.choice([(1, (0, 9, 60_000)), (5, (0, 9, 20_000)), (1_500, (0, 1, 99))])
        buffers = [memoryview(rng.randbytes(rng.choice(sizes))) for _ in range(count)]
        expected += b"".join(buffers)
        is_done = queue.send(sock, buffers)  # type: ignore[arg-type]
        assert is_done == (queue.size == 0)
        assert bytes(sock.taken) == expected[: len(sock.taken)]
        assert queue.size == len(expected) - len(sock.taken)
        assert queue.sent_size == len(sock.taken)
        if rng.random() < 0.5:
            queue.flush(sock)  # type: ignore[arg-type]
    while not queue.flush(sock):  # type: ignore[arg-type]
        pass
    assert bytes(sock.taken) == expected
    assert (queue.size, queue.sent_size) == (0, len(expected))


def test_what_is_cleared_is_not_written() -> None:
    queue, sock = SendQueue(), Picky(1)
    while queue.send(sock, [b"x" * 100_000]):  # type: ignore[arg-type]
        pass
    written = len(sock.taken)
    queue.clear()
    assert queue.size == 0
    assert queue.flush(sock)  # type: ignore[arg-type]
    assert len(sock.taken) == written
