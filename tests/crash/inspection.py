"""Reads the files of a killed writer with the oracle, before any open changes them.

A state that recovery mends is no problem here: half a batch at the end of a log, files that a
compaction was moving. A missing acknowledged record is one.
"""

from __future__ import annotations

import os

from tests.crash.ledger import Ledger
from tests.crash.oracle import CommittedOffset, OracleBatch, committed_offsets, read_segment
from tests.crash.report import Report
from tests.crash.workload import (
    KEY_COUNT,
    KEYED,
    LOG,
    RETENTION_SIZE,
    SHARED,
    SIZED,
    Content,
    content,
    number_in,
)


class Checked:
    """A segment file whose batches were read and are correct."""

    def __init__(self, topic: str, path: str) -> None:
        segment = read_segment(path)
        self.base_offset = segment.base_offset
        self.size = segment.size
        self.stopped = segment.stopped
        self.problems: list[str] = []
        self.offsets: list[int] = []
        self.numbers: list[int] = []
        """The record number in the value of each record of the topic with two writers."""
        for batch in segment.batches:
            self._take(topic, batch)

    def _take(self, topic: str, batch: OracleBatch) -> None:
        if batch.base_offset < max([self.base_offset, *self.offsets[-1:]]):
            self.problems.append(f"{batch.path} at {batch.position}: goes back")
        for record in batch.records:
            number = record.offset
            if topic == SHARED:
                number = number_in(topic, record.value)
                self.numbers.append(number)
            if Content(record.key, record.value) != content(topic, number):
                shown = str(record.value)[:40]
                self.problems.append(f"{batch.path}: offset {record.offset} holds {shown}")
            self.offsets.append(record.offset)


class Inspector:
    """Inspects one directory again and again; unchanged files are read only once."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._known: dict[tuple[str, int, int, int], Checked] = {}

    def forget(self) -> None:
        """Read every file anew the next time: an old file may have changed."""
        self._known.clear()

    def look(self, ledger: Ledger, report: Report) -> list[str]:
        """Compare the files with the acknowledgements; return the problems."""
        problems: list[str] = []
        for topic in ledger.topics:
            self._look_at(topic, ledger, report, problems)
        return problems

    def look_at_offsets(self, ledger: Ledger, report: Report) -> list[str]:
        """Do the same for committed offsets of groups."""
        found: dict[CommittedOffset, int] = {}
        names = [n for n in os.listdir(self._directory) if n.startswith("__consumer_offsets-")]
        for name in names:
            if any(n.endswith(".swap") for n in os.listdir(f"{self._directory}/{name}")):
                return []
        for name in names:
            committed_offsets(f"{self._directory}/{name}", found)
        report.add("looks at committed offsets")
        problems = []
        for group, known in ledger.offsets.items():
            offset = found.get(CommittedOffset(group, LOG, 0), 0)
            if not known.holds(offset):
                problems.append(f"files: {group} stands at {offset}, committed were {known}")
        return problems

    def _look_at(self, topic: str, ledger: Ledger, report: Report, problems: list[str]) -> None:
        directory = f"{self._directory}/{topic}-0"
        names = sorted(os.listdir(directory))
        if any(name.endswith(".swap") for name in names):
            report.add("swaps cut short")
            return
        segments = [self._segment(topic, directory, n) for n in names if n.endswith(".log")]
        for segment in segments:
            problems += segment.problems
            if segment is not segments[-1] and segment.stopped not in {"end", "zeros"}:
                problems.append(f"{topic}: {segment.base_offset} ends with {segment.stopped}")
        if segments and segments[-1].stopped not in {"end", "zeros"}:
            report.add("torn tails")
        offsets = [offset for segment in segments for offset in segment.offsets]
        end = ledger.ends[topic].low
        if end and (not offsets or offsets[-1] + 1 < end) and ledger.starts[topic].high < end:
            problems.append(f"{topic} ends at {offsets[-1:]}, acknowledged are {end}")
        if topic == KEYED:
            there = {offset % KEY_COUNT: offset for offset in offsets}
            # A later record with the same key may have replaced a record, though it was not
            # acknowledged.
            missing = [
                offset
                for offset in range(max(0, end - KEY_COUNT), end)
                if there.get(offset % KEY_COUNT, -1) < offset
            ]
            if missing:
                problems.append(f"{topic}: {missing} are the last of their keys, and gone")
        elif offsets != list(range(offsets[0], offsets[0] + len(offsets))) if offsets else False:
            problems.append(f"{topic}: there are holes in {offsets}")
        if topic == LOG and offsets and offsets[0] > ledger.starts[topic].high:
            problems.append(f"{topic} begins at {offsets[0]}: {ledger.starts[topic]}")
        if topic in {SIZED, SHARED} and offsets and offsets[0]:
            size = sum(segment.size for segment in segments)
            if size < RETENTION_SIZE:
                problems.append(f"{topic}: retention left {size} bytes of {RETENTION_SIZE}")
        if topic == SHARED:
            self._look_at_shared(ledger, segments, offsets, problems)

    def _look_at_shared(
        self, ledger: Ledger, segments: list[Checked], offsets: list[int], problems: list[str]
    ) -> None:
        numbers = [number for segment in segments for number in segment.numbers]
        if len(set(numbers)) != len(numbers):
            problems.append(f"{SHARED}: a record is there twice")
        found = dict(zip(offsets, numbers, strict=True))
        for offset, number in ledger.shared.items():
            if offsets and offset >= offsets[0] and found.get(offset) != number:
                problems.append(f"{SHARED} at {offset}: {found.get(offset)}, not {number}")

    def _segment(self, topic: str, directory: str, name: str) -> Checked:
        path = f"{directory}/{name}"
        stat = os.stat(path)
        key = (path, stat.st_ino, stat.st_size, stat.st_mtime_ns)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Checked(topic, path)
        return known
