"""`Listeners`: the addresses of a broker, and what a test does to their connections."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket

    Wrap = Callable[[socket], socket]
else:
    Wrap = None


class Listeners:
    """What a broker knows of its listeners."""

    __slots__ = ("cuts", "endpoints", "wrap")

    def __init__(self) -> None:
        self.endpoints: list[tuple[str, str, int]] = []
        """(listener name, host, port) of every listener, as advertised."""
        self.cuts: list[Callable[[], None]] = []
        """A function of each listener that breaks its connections, callable from any thread."""
        self.wrap: Wrap | None = None
        """Returns the socket to use in place of a newly accepted one. None: the accepted one."""

    def wrapped(self, sock: socket) -> socket:
        """Return the socket for a newly accepted one."""
        return sock if self.wrap is None else self.wrap(sock)

    def cut(self) -> None:
        """Break all present connections, soon."""
        for each in list(self.cuts):
            each()
