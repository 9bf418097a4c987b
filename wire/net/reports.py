"""A listener's log lines about its peers. The lines of each kind are limited.

Without a limit a peer could flood the log, because it may connect and send as often as it likes.
"""

from __future__ import annotations

import time

from wire.logger import NamedLogger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Peer(Protocol):
        """The attributes of a connection that a log line names."""

        @property
        def peer_host(self) -> str: ...

        @property
        def peer_port(self) -> int: ...


LINES_MAX = 5
WINDOW_S = 10.0
"""At most `LINES_MAX` lines of one kind are logged in `WINDOW_S` seconds."""

_SHOWN_SIZE = 16
_PLAUSIBLE_SIZE_MAX = 1 << 30
_TLS_HANDSHAKE = b"\x16\x03"
_HTTP_METHODS = (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"CONN", b"PATC", b"PRI ")


class Reports:
    """Logs for one listener. Requires: the listener's thread."""

    def __init__(
        self, log: NamedLogger | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.log = log if log is not None else NamedLogger("wire.net")
        self._clock = clock
        self._windows: dict[str, list[float]] = {}
        """Kind of line -> [start of its window, lines logged in the window, lines left out in it].
        There are only few kinds, because none contains text from a peer."""

    def connected(self, peer: Peer) -> None:
        self.log.debug("connection from %s:%d", peer.peer_host, peer.peer_port)

    def disconnected(self, peer: Peer) -> None:
        self.log.debug("connection from %s:%d has ended", peer.peer_host, peer.peer_port)

    def idle(self, peer: Peer) -> None:
        self.log.info("connection from %s:%d closed: idle", peer.peer_host, peer.peer_port)

    def not_welcome(self, host: str, why: str) -> None:
        """Log a connection refused because of a limit, which `why` names."""
        self._warn("refused", "connection from %s refused: %s", host, why)

    def cut_off(self, peer: Peer, kind: str, why: str) -> None:
        """Log that a connection is closed because of its peer's behaviour."""
        self._warn(kind, "connection from %s:%d closed: %s", peer.peer_host, peer.peer_port, why)

    def bad_size(self, peer: Peer, start: bytes, size: int, limit: int) -> None:
        """Log a frame of a forbidden size; `start` holds its first bytes."""
        why = known = foreign(start)
        if known is None:
            why = f"a request of {size} bytes is more than socket.request.max.bytes={limit}"
            if not 0 <= size <= _PLAUSIBLE_SIZE_MAX:
                why = f"this is not the Kafka protocol: it begins with {start[:_SHOWN_SIZE]!r}"
        self.cut_off(peer, known or "size", why or "")

    def failed(self, what: str, error: BaseException) -> None:
        """Log an unexpected error: a bug, or an error of the system."""
        self.log.error("%s", what, exc_info=error)

    def short_of(self, error: OSError) -> None:
        """Log that the system has no descriptors or memory for another connection."""
        self._warn("short", "connections have to wait: %s", error)

    def _warn(self, kind: str, message: str, *values: object) -> None:
        now = self._clock()
        window = self._windows.get(kind)
        if window is None or now - window[0] > WINDOW_S:
            left_out = int(window[2]) if window is not None else 0
            self._windows[kind] = [now, 1, 0]
            if left_out:
                message += f" ({left_out} more like it before)"
        elif window[1] < LINES_MAX:
            window[1] += 1
        else:
            window[2] += 1
            return
        self.log.warning(message, *values)


def foreign(start: bytes) -> str | None:
    """Name the kind of client that sent these first bytes; None if it may be a Kafka client.

    >>> foreign(b"GET / HTTP/1.1")
    'an HTTP client talks to a Kafka port'
    """
    if start.startswith(_TLS_HANDSHAKE):
        return (
            "a TLS client talks to a plaintext port: its security.protocol must be PLAINTEXT, not "
            "SSL or SASL_SSL"
        )
    if start.startswith(_HTTP_METHODS):
        return "an HTTP client talks to a Kafka port"
    if start.startswith(b"SSH-"):
        return "an SSH client talks to a Kafka port"
    return None
