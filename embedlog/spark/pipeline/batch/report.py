"""Counts of a batch and of all batches; a repeated batch counts once."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class BatchReport:
    """One batch. Counts are of records and rows; times are wall time in ms."""

    app: str
    version: int
    read: int = 0
    dead: int = 0
    unknown: int = 0
    """Rows with columns that the schema lacks."""
    broken: dict[str, int] = field(default_factory=dict)
    """Rule -> rows that broke it."""
    errors: dict[str, int] = field(default_factory=dict)
    """Stage (decode, schema, map, key, rule, late, output) -> its dead letters."""
    written: dict[str, int] = field(default_factory=dict)
    """Sink -> rows of this batch in it; for upserts, the changes applied."""
    newest_ms: int = -1
    """The greatest timestamp of the batch's records, in ms."""
    repeated: list[str] = field(default_factory=list)
    """Sinks that had this batch before; `written` has the stored counts of their rows."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class Totals:
    """Sums over batches. Each batch counts once."""

    app: str = ""
    """The query of the last batch. Another query, with a new checkpoint, begins at version 0."""
    last_version: int = -1
    read: int = 0
    dead: int = 0
    unknown: int = 0
    broken: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    newest_ms: int = -1

    def add(self, batch: BatchReport) -> None:
        if batch.app == self.app and batch.version <= self.last_version:
            return
        self.app = batch.app
        self.last_version = batch.version
        self.read += batch.read
        self.dead += batch.dead
        self.unknown += batch.unknown
        for what in ("broken", "errors", "written"):
            mine = getattr(self, what)
            for name, count in getattr(batch, what).items():
                mine[name] = mine.get(name, 0) + count
        self.newest_ms = max(self.newest_ms, batch.newest_ms)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
