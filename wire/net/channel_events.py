"""The events that `SocketChannels.poll` returns."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.net.channel import Channel


class EventKind:
    """The kinds of events."""

    CONNECTED = 1
    FRAME = 2
    CLOSED = 3


class ChannelEvent:
    """An event of a channel.

    FRAME sets `frame`: a view, without the size, that stays valid and unchanged while it is held.
    CLOSED sets `reason`, one line of text, and `is_refused`: the two sides do not agree on TLS, so
    a retry would fail too.
    """

    __slots__ = ("channel", "frame", "is_refused", "kind", "reason")

    def __init__(
        self,
        kind: int,
        channel: Channel,
        *,
        frame: memoryview | None = None,
        reason: str = "",
        is_refused: bool = False,
    ) -> None:
        self.kind = kind
        self.channel = channel
        self.frame = frame
        self.reason = reason
        self.is_refused = is_refused

    def __repr__(self) -> str:
        name = {1: "CONNECTED", 2: "FRAME", 3: "CLOSED"}[self.kind]
        detail = f" {len(self.frame)} bytes" if self.frame is not None else ""
        return f"<ChannelEvent {name} {self.channel}{detail}{self.reason and ': ' + self.reason}>"
