"""Random frames, and requests with some changed bytes."""

from __future__ import annotations

import random
import select
from contextlib import suppress

import wire
from embedlog.broker import dispatch
from tests.crash.peers.victim import Peer, Victim
from tests.crash.report import Options
from wire.headers import encode_request_header
from wire.registry import request_class

_AT_ONCE = 50
_SIZE_MAX = 400


def send_random_frames(victim: Victim, options: Options) -> None:
    """Send `options.count` frames, fifty on a connection; most of them end the connection."""
    chance = random.Random(options.seed)
    patterns = _patterns()
    for _ in range(0, options.count, _AT_ONCE):
        frames = b"".join(_frame(chance, patterns) for _ in range(_AT_ONCE))
        peer = victim.connect()
        with suppress(ConnectionError):
            peer.sock.sendall(frames)
            _drain(peer)
        peer.close()
        victim.probe()


def _drain(peer: Peer) -> None:
    """Read the available bytes only: a parked request may have no answer for long."""
    while select.select([peer.sock], [], [], 0)[0] and peer.sock.recv(1 << 16):
        pass


def _patterns() -> list[bytes]:
    """Return a default request of every API and version."""
    found = []
    for api_key, (first, last) in dispatch.VERSIONS.items():
        for version in range(first, last + 1):
            head = encode_request_header(
                api_key=api_key, api_version=version, correlation_id=1, client_id="x"
            )
            found.append(head + wire.encode(request_class(api_key)(), version))
    return found


def _frame(chance: random.Random, patterns: list[bytes]) -> bytes:
    if chance.random() < 0.3:
        content = bytearray(chance.randbytes(chance.randrange(_SIZE_MAX)))
    else:
        content = bytearray(chance.choice(patterns) + chance.randbytes(chance.randrange(20)))
        for _ in range(chance.randrange(4)):
            content[chance.randrange(4, len(content))] = chance.choice((0, 1, 127, 128, 255))
    return len(content).to_bytes(4, "big") + bytes(content)
