"""`Entry`: an event that still waits for its answer."""

from __future__ import annotations

from embedlog.testing.timeline import summary
from embedlog.testing.timeline.event import Event


class Entry:
    """An event that still waits for its answer, as cheap as possible."""

    __slots__ = (
        "api", "at_us", "client_id", "duration_us", "errors", "fields", "kind", "node_id", "peer",
        "text", "version", "why",
    )  # fmt: skip

    def __init__(self, at_us: int, kind: str, text: str, why: str, node_id: int | None) -> None:
        self.at_us = at_us
        self.kind = kind
        self.text = text
        self.why = why
        self.node_id = node_id
        self.client_id: str | None = None
        self.api = ""
        self.version = -1
        self.peer = ""
        self.duration_us: int | None = None
        self.errors: tuple[str, ...] = ()
        self.fields: dict[str, list[str]] = {}

    def event(self) -> Event:
        return Event(
            at_us=self.at_us,
            kind=self.kind,
            text=self.text or self._request_text(),
            why=self.why,
            node_id=self.node_id,
            client_id=self.client_id,
            api=self.api,
            version=self.version,
            peer=self.peer,
            duration_us=self.duration_us,
            errors=self.errors,
            fields=self.fields,
        )

    def _request_text(self) -> str:
        client = f' "{self.client_id}"' if self.client_id else ""
        peer = f" of {self.peer}" if self.peer else ""
        places = summary.shown(self.fields)
        text = f"broker {self.node_id}{client}: {self.api} {self.version}{peer}"
        return f"{text}, {places}" if places else text
