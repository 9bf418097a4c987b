"""Where the application's Kafka is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Settings:
    """The topic of the events, and the arguments of both clients."""

    topic: str
    producer: dict[str, Any] = field(default_factory=dict)
    consumer: dict[str, Any] = field(default_factory=dict)
    patience_s: float = 20.0
