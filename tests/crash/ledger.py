"""The output of killed writers: the state that is certain, and the states that are possible.

A line of a writer is a word for the subject, `?` before an attempt or `!` after its
acknowledgement, and numbers. The parent applies the lines; children forked later have the ledger.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.crash.workload import GROUPS, SHARED, TOPICS

FIGURES = {
    "end": "records",
    "shared": "records",
    "commit": "commits",
    "setting": "settings",
    "start": "deletions of records",
    "make": "topics made",
    "delete": "topics deleted",
    "maintained": "rounds of retention and compaction",
}
"""Figures of the report, by word, counted at each acknowledgement."""


@dataclass
class Range:
    """A number that only grows: `low` is acknowledged, `high` was tried."""

    low: int = 0
    high: int = 0

    def apply(self, sign: str, number: int) -> None:
        self.high = max(self.high, number)
        if sign == "!":
            self.low = max(self.low, number)

    def settle(self, found: int) -> None:
        """Take over a number that was read: later readers may not find another."""
        self.low = found
        self.high = found

    def holds(self, found: int) -> bool:
        return self.low <= found <= self.high


@dataclass
class MadeTopic:
    """A topic that is created and deleted repeatedly. `generation` counts its creations, so that
    old records are recognised.
    """

    generation: int = 0
    is_there: bool = False
    is_sure: bool = True
    records: Range = field(default_factory=Range)


@dataclass
class Ledger:
    """The ledger of one directory. `durability` is the level of the broker and of its topics."""

    durability: str
    topics: set[str] = field(default_factory=set)
    """Permanent topics whose creation was acknowledged."""

    ends: dict[str, Range] = field(default_factory=lambda: {name: Range() for name in TOPICS})
    starts: dict[str, Range] = field(default_factory=lambda: {name: Range() for name in TOPICS})
    shared: dict[int, int] = field(default_factory=dict)
    """Offset -> number of the record that was acknowledged there, in the topic with two writers."""

    shared_next: int = 0
    offsets: dict[str, Range] = field(default_factory=lambda: {name: Range() for name in GROUPS})
    setting: Range = field(default_factory=Range)
    made: dict[str, MadeTopic] = field(default_factory=dict)
    acknowledged: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def apply(self, line: bytes) -> None:
        """Apply one line of a writer."""
        word, sign, *given = line.decode().split(" ")
        if word == "broken":
            self.problems.append(" ".join([sign, *given]))
            return
        if sign == "!" and word in FIGURES:
            self.acknowledged[FIGURES[word]] += 1
        getattr(self, f"_{word}")(sign, *given)

    def _topic(self, sign: str, name: str) -> None:
        if sign == "!":
            self.topics.add(name)

    def _end(self, sign: str, topic: str, end: str) -> None:
        self.ends[topic].apply(sign, int(end))

    def _seen(self, _sign: str, topic: str, start: str, end: str) -> None:
        """Apply the end of a log that a reader saw: from here on it may neither shrink
        nor change.
        """
        self.ends[topic].settle(int(end))
        self.starts[topic].settle(int(start))
        if topic == SHARED:
            for offset in [each for each in self.shared if each < int(start)]:
                del self.shared[offset]

    def _start(self, sign: str, topic: str, start: str) -> None:
        self.starts[topic].apply(sign, int(start))

    def _shared(self, sign: str, number: str, offset: str = "-1") -> None:
        self.shared_next = max(self.shared_next, int(number) + 1)
        if sign == "!":
            self.shared[int(offset)] = int(number)
            self.ends[SHARED].apply("!", int(offset) + 1)

    def _offset(self, sign: str, group: str, offset: str) -> None:
        self.offsets[group].apply(sign, int(offset))

    _commit = _offset

    def _maintained(self, _sign: str) -> None:
        """Only a figure of the report."""

    def _setting(self, sign: str, value: str) -> None:
        self.setting.apply(sign, int(value))

    def _make(self, sign: str, name: str, generation: str) -> None:
        self.made[name] = MadeTopic(int(generation), is_there=True, is_sure=sign == "!")

    def _delete(self, sign: str, name: str) -> None:
        made = self.made[name]
        made.is_there = False
        made.is_sure = sign == "!"

    def _found(self, _sign: str, name: str, is_there: str) -> None:
        """A read settles whether the attempt succeeded; from here on the state stays."""
        made = self.made.setdefault(name, MadeTopic())
        made.is_there = is_there == "1"
        made.is_sure = True

    def _made(self, sign: str, name: str, end: str) -> None:
        self.made[name].records.apply(sign, int(end))
