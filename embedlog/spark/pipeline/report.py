"""What became of a batch, and of all of them: numbers that are counted once, replays or not."""

from __future__ import annotations

from collections.abc import Mapping
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
    """Rows that had columns which the schema does not have."""
    broken: dict[str, int] = field(default_factory=dict)
    """Rule -> rows that broke it."""
    errors: dict[str, int] = field(default_factory=dict)
    """Stage (decode, schema, map, key, rule, late) -> dead letters of it."""
    written: dict[str, int] = field(default_factory=dict)
    """Sink -> rows of this batch in it; for upserts, the changes applied."""
    newest_ms: int = -1
    """The greatest timestamp of a record."""
    repeated: list[str] = field(default_factory=list)
    """Sinks that had this batch already."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(slots=True)
class Totals:
    """Sums over batches, in the order of their versions; each batch counts once."""

    app: str = ""
    """The query that the last batch was of: another one, with a new checkpoint, begins at 0."""
    last_version: int = -1
    read: int = 0
    dead: int = 0
    unknown: int = 0
    broken: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    newest_ms: int = -1

    def add(self, batch: BatchReport) -> None:
        """Count a batch, unless it was counted."""
        if batch.app == self.app and batch.version <= self.last_version:
            return
        self.app = batch.app
        self.last_version = batch.version
        self.read += batch.read
        self.dead += batch.dead
        self.unknown += batch.unknown
        for mine, other in (
            (self.broken, batch.broken),
            (self.errors, batch.errors),
            (self.written, batch.written),
        ):
            for name, count in other.items():
                mine[name] = mine.get(name, 0) + count
        self.newest_ms = max(self.newest_ms, batch.newest_ms)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Totals:
        """What `as_dict` made."""
        return cls(**found)
