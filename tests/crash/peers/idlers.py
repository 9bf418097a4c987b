"""The maximum number of connections, which send nothing, or a byte now and then."""

from __future__ import annotations

import time
from contextlib import suppress

from tests.crash.peers.victim import Peer, Victim

_CONNECTION_COUNT = 900
"""The broker takes 1,000; a process often has 1,024 descriptors."""
_PAUSE_S = 0.05


def hold_connections(victim: Victim, seconds: float) -> None:
    """Hold the connections for some seconds; every second one drips a request, the others are
    silent.
    """
    peers: list[Peer] = [victim.connect() for _ in range(_CONNECTION_COUNT)]
    ends = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < ends:
        with suppress(ConnectionError):  # the listener has closed this connection
            peers[turn * 2 % len(peers)].sock.sendall(b"\0")
        turn += 1
        victim.probe()
        time.sleep(_PAUSE_S)
    for peer in peers:
        peer.close()
