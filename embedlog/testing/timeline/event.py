"""`Event`: one thing that happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Event:
    """One thing that happened to a cluster. It is a copy: nothing in it changes later."""

    at_us: int
    """Microseconds since the recording began."""
    kind: str
    """"request" for requests; otherwise one of `KINDS`."""
    text: str
    """What happened, for people."""
    why: str = ""
    """The reason, if one is known: a rule of the test, a time-out, a member."""
    node_id: int | None = None
    """The broker; None if the event concerns the cluster."""
    client_id: str | None = None
    api: str = ""
    """Name of the API of a request."""
    version: int = -1
    peer: str = ""
    """`host:port` of the client; empty for clients in this process."""
    duration_us: int | None = None
    """Time until the answer; None if there was none yet when the event was read."""
    errors: tuple[str, ...] = ()
    """Names of the errors in the answer, each once."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """More about the event: topics, groups and ids that a request names."""

    def as_json(self) -> dict[str, Any]:
        """Return the event as values for JSON, without the fields that it does not use."""
        found = asdict(self)
        return {name: value for name, value in found.items() if value not in (None, "", -1, (), {})}

    def __str__(self) -> str:
        took = "" if self.duration_us is None else f", {self.duration_us / 1000:.1f} ms"
        outcome = f" -> {', '.join(self.errors)}" if self.errors else ""
        reason = f" (reason: {self.why})" if self.why else ""
        return f"+{self.at_us / 1e6:.4f} {self.kind:<11} {self.text}{outcome}{took}{reason}"


KINDS = (
    "broker",
    "election",
    "fault",
    "fence",
    "group",
    "log",
    "rebalance",
    "request",
    "session",
    "topic",
    "transaction",
)
"""The kinds of events."""
