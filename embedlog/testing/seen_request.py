"""`SeenRequest`: one request that a client sent, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """One request that a client sent."""

    api: str
    version: int
    client_id: str | None
    node_id: int
    """The broker that got it."""

    def __str__(self) -> str:
        return f"{self.api} v{self.version} of {self.client_id!r} at broker {self.node_id}"
