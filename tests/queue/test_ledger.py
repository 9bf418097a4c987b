"""The timetable and the ledger of delayed jobs, against plain models."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from embedlog.queue.delays.entry import NAMED, Entry
from embedlog.queue.delays.ledger import Ledger
from embedlog.queue.delays.timetable import Timetable


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=200), st.data())
@settings(max_examples=50)
def test_rows_come_in_order(steps: list[tuple[int, int]], data: st.DataObject) -> None:
    table, model = Timetable(limit=4), list[tuple[int, int]]()
    for offset, (due, now) in enumerate(steps):
        table.add(due, offset)
        model.append((due, offset))
        if data.draw(st.booleans()):
            count = data.draw(st.integers(1, 5))
            model.sort()
            expected = [row for row in model if row[0] <= now][:count]
            assert table.take(now, count) == expected
            model = [row for row in model if row not in expected]
        assert len(table) == len(model)
        assert table.next_due_ms() == min((row[0] for row in model), default=None)
    assert table.take(10**9, 10**9) == sorted(model)


@dataclass
class Record:
    """As much of a consumer's record as the ledger reads."""

    offset: int
    key: bytes
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes], ...] = ()
    topic: str = "jobs.delayed"


IDS = st.sampled_from([b"a", b"b", b"c"])
STEPS = st.lists(st.tuples(st.sampled_from(["put", "cancel", "move", "restart"]), IDS), max_size=40)


@given(STEPS)
@settings(max_examples=200)
def test_the_newest_record_of_an_id_counts(steps: list[tuple[str, bytes]]) -> None:
    """Named jobs are put, replaced, cancelled and moved, and the mover starts anew."""
    log: list[Record] = []
    live: dict[bytes, int] = {}
    ledger = Ledger()
    ledger.end_first_reading()

    def append(key: bytes, value: bytes | None) -> None:
        headers = ((NAMED, b"1"), ("job.to", b"jobs"))
        log.append(Record(len(log), key, value, 10, headers if value else ()))
        ledger.read(log[-1])  # type: ignore[arg-type]

    for step, job_id in steps:
        if step == "put":
            append(job_id, b"v")
            live[job_id] = log[-1].offset
        elif step == "cancel":
            append(job_id, None)
            live.pop(job_id, None)
        elif step == "restart":
            ledger = Ledger()
            for record in log:
                ledger.read(record)  # type: ignore[arg-type]
            ledger.end_first_reading()
        else:
            rows = ledger.table.take(10, 100)
            entries = [Entry(log[offset], "jobs") for _, offset in rows]  # type: ignore[arg-type]
            counted = [entry for entry in entries if ledger.counts(entry)]
            assert {entry.id: entry.offset for entry in counted} == live
            for entry in counted:
                ledger.moved(entry)
                append(entry.id, None)
            assert not ledger.overtaken
            live = {}


def test_a_job_put_while_its_former_record_is_moved_is_not_lost() -> None:
    ledger = Ledger()
    ledger.end_first_reading()
    headers = ((NAMED, b"1"), ("job.to", b"jobs"))
    first = Record(0, b"a", b"1", 10, headers)
    ledger.read(first)  # type: ignore[arg-type]
    ((_, offset),) = ledger.table.take(10, 10)
    entry = Entry(first, "jobs")  # type: ignore[arg-type]
    assert offset == 0
    assert ledger.counts(entry)
    # A user replaces the job between the reading of the record and the mover's tombstone.
    ledger.moved(entry)
    ledger.read(Record(1, b"a", b"2", 10, headers))  # type: ignore[arg-type]
    ledger.read(Record(2, b"a", None, 0))  # type: ignore[arg-type]
    assert ledger.overtaken == [1]
    again = Record(3, b"a", b"2", 10, headers)
    ledger.read(again)  # type: ignore[arg-type]
    assert ledger.counts(Entry(again, "jobs"))  # type: ignore[arg-type]
