"""Compaction keeps its promises at every moment, for any records and any rounds."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage.cleaner.compaction import (
    Compacted,
    Row,
    check_compacted,
    committed_rows,
    latest,
    rows,
    stored_batches,
)
from tests.storage.logs import append_marker
from tests.support import sizes

KEYS = ("a", "b", "c", "d", "e")
RETENTION_MS = 3_600_000

pairs = st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.sampled_from(["v", "w" * 40])))
plain = st.tuples(st.just("put"), st.lists(pairs, min_size=1, max_size=4), st.sampled_from([0, 4]))
idempotent = st.tuples(st.just("send"), st.lists(pairs, min_size=1, max_size=2))
transactional = st.tuples(
    st.just("transact"), st.integers(1, 2), st.lists(pairs, min_size=1, max_size=3)
)
marker = st.tuples(st.just("end"), st.integers(1, 2), st.booleans())
other = st.sampled_from(
    [("roll",), ("clean",), ("clean",), ("wait", RETENTION_MS // 2), ("wait", RETENTION_MS)]
)
operations = st.lists(
    st.one_of(plain, plain, idempotent, transactional, marker, other), min_size=10, max_size=40
)


@dataclass
class Model:
    """The written records, and the ones that compaction may have removed."""

    topic: Compacted
    records: dict[int, Row] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    """Offsets of records whose transaction was aborted."""
    open: dict[int, list[int]] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)
    first_kept_ms: dict[int, int] = field(default_factory=dict)
    """Offset of a tombstone -> time of the first round that passed it."""

    def write(self, written: list[tuple[str, str | None]], **fields) -> list[int]:
        first = self.topic.put(*written, **fields)
        for number, (key, value) in enumerate(written):
            row = (first + number, key.encode(), None if value is None else value.encode())
            self.records[first + number] = row
        return list(range(first, first + len(written)))

    def produce(self, producer_id: int, written: list[tuple[str, str | None]], **fields):
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + len(written)
        return self.write(written, producer=(producer_id, 0, sequence), **fields)

    def run(self, operation: tuple) -> None:
        kind, *arguments = operation
        if kind == "put":
            self.write(arguments[0], codec=arguments[1])
        elif kind == "send":
            self.produce(7, arguments[0])
        elif kind == "transact":
            producer_id, written = arguments
            offsets = self.produce(producer_id, written, transactional=True)
            self.open.setdefault(producer_id, []).extend(offsets)
        elif kind == "end":
            self.end(*arguments)
        elif kind == "roll":
            self.topic.log.roll()
        elif kind == "wait":
            self.topic.runtime.clock.advance(arguments[0])
        else:
            self.clean()

    def end(self, producer_id: int, committed: bool) -> None:
        offsets = self.open.pop(producer_id, None)
        if offsets is None:
            return
        append_marker(self.topic.log, producer_id, committed=committed)
        self.topic.commit()
        if not committed:
            self.aborted.update(offsets)

    def clean(self) -> None:
        known = latest(self.committed())
        self.topic.clean(lambda: self.check_reader(known))
        for offset in self.clean_committed():
            self.first_kept_ms.setdefault(offset, self.topic.now_ms)

    def committed(self) -> list[Row]:
        """Return the records of a read_committed reader of an uncompacted log."""
        end = self.topic.log.offsets.last_stable_offset
        return [row for n, row in self.records.items() if n < end and n not in self.aborted]

    def clean_committed(self) -> list[int]:
        return [n for n, _, _ in self.committed() if n < self.topic.log.offsets.cleaned_offset]

    def check_reader(self, known: dict) -> None:
        """A reader of the whole log has the same state at any moment."""
        assert latest(committed_rows(self.topic.log)) == known

    def check(self) -> None:
        log = self.topic.log
        check_compacted(log)
        found = rows(log)
        offsets = [offset for offset, _, _ in found]
        assert offsets == sorted(set(offsets))
        assert all(self.records[row[0]] == row for row in found)
        end = max(log.offsets.cleaned_offset, 0)
        dirty = [row for n, row in self.records.items() if n >= end]
        assert [row for row in found if row[0] >= end] == dirty
        last = {self.records[n][1]: n for n in self.clean_committed()}
        for offset in offsets:
            if offset < end:
                assert last[self.records[offset][1]] == offset, "an older record has stayed"
        for offset in last.values():
            _, _, value = self.records[offset]
            if value is not None:
                assert offset in offsets, "a last value has gone"
            elif offset not in offsets:
                age_ms = self.topic.now_ms - self.first_kept_ms[offset]
                assert age_ms >= RETENTION_MS - 60_000, "a tombstone has gone early"
        self.check_reader(latest(self.committed()))


@pytest.mark.slow
@given(operations)
@settings(max_examples=sizes.size(40, full=100), deadline=None)
def test_the_last_records_stay_and_nothing_is_invented(script: list[tuple]) -> None:
    model = Model(Compacted())
    for operation in script:
        model.run(operation)
        if operation == ("clean",):
            model.check()
    model.clean()
    model.check()


@pytest.mark.slow
@given(operations)
@settings(max_examples=50, deadline=None)
def test_cleaning_again_what_is_clean_changes_nothing(script: list[tuple]) -> None:
    model = Model(Compacted())
    for operation in script:
        model.run(operation)
    log = model.topic.log
    log.roll()
    found = []
    for _ in range(3):
        log.offsets.cleaned_offset = 0
        model.topic.clean_at_once()
        found.append((rows(log), [bytes(one.buffer) for one in stored_batches(log)]))
    assert found[0][0] == found[1][0]
    # The second round sets the horizon of markers whose data the first has removed; then nothing
    # moves.
    assert found[1] == found[2]


@pytest.mark.slow
@given(operations, st.booleans())
@settings(max_examples=50, deadline=None)
def test_a_restart_finds_the_same_records_and_producers(script: list[tuple], cleanly: bool) -> None:
    model = Model(Compacted())
    for operation in script:
        model.run(operation)
    model.clean()
    log = model.topic.log
    expected = rows(log)
    producers = {
        one.producer_id: (one.producer_epoch, one.last_sequence)
        for one in log.transactions.producers
    }
    open_transactions = {n: one.current_txn_first_offset for n, one in _by_id(log).items()}
    if not cleanly:
        for name in log.files.list(log.directory):
            if name.endswith((".snapshot", "index")):
                log.files.remove(f"{log.directory}/{name}")
    model.topic = again = model.topic.reopened(cleanly=cleanly)
    assert rows(again.log) == expected
    found = {
        one.producer_id: (one.producer_epoch, one.last_sequence)
        for one in again.log.transactions.producers
    }
    assert found == producers
    assert {n: one.current_txn_first_offset for n, one in _by_id(again.log).items()} == (
        open_transactions
    )
    model.check()
    model.clean()
    model.check()


def _by_id(log):
    return {one.producer_id: one for one in log.transactions.producers}
