"""The promises that hold at the end of a run.

acknowledged       is in the log at its offset, unless DeleteRecords, compaction or a new topic
                   removed it
every record       is in the log once at most, in the order of its writer, and was sent
transaction        committed: all of it; aborted or left: none of it; unknown: all or none
reader             offsets only rise; a record is what the log has at its offset; no record of
                   the log is left out; read_committed: nothing that was aborted
member             begins at the last successful commit of the group, or later
compacted          the last record of a key is the last acknowledged one, or a later one
replicas           end at the same offset
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.crash.nemesis import topics
from tests.crash.nemesis.clients import LIBRDKAFKA
from tests.crash.nemesis.history import (
    ABORTED,
    ACKED,
    Final,
    Group,
    History,
    Place,
    Reader,
    Written,
)

JUST_MADE_S = 2.0
"""A new topic knows no producer and takes any first number, as in Kafka. So of the batches that are
in flight when it is made, a later one may come first."""


def broken(history: History, final: Final) -> list[str]:
    """Return the broken promises."""
    found = [*history.broken, *_records(history, final), *_transactions(history, final)]
    found += _keys(history, final)
    for reader in history.readers:
        found += _reader(reader, history, final)
    for group in history.groups:
        found += _group(group, final)
    return found


def _records(history: History, final: Final) -> Iterator[str]:
    places: dict[bytes, list[tuple[Place, int]]] = defaultdict(list)
    for place, log in final.everything.items():
        for offset, value in log.items():
            places[value].append((place, offset))
    last: dict[tuple[str, Place], tuple[int, Written]] = {}
    for each in history.written:
        found = places.pop(each.value, [])
        if found and (found[0][0] != each.place or _is_twice(each, found, history, final)):
            yield f"{_name(each)} is there at {found}"
        if each.outcome == ACKED and not found and not _may_be_gone(each, history, final):
            yield f"{_name(each)} is lost"
        if not found:
            continue
        offsets = [offset for _, offset in found]
        offset = each.offset if each.offset in offsets else offsets[0]
        if each.outcome == ACKED and offset != each.offset and _is_of_this_topic(each, history):
            yield f"{_name(each)} is at {offset}"
        if not _is_of_this_topic(each, history, longer_than_s=JUST_MADE_S):
            continue  # a record that was sent to the former topic may be late
        before = last.get((each.writer, each.place))
        if before is not None and offset <= before[0]:
            yield f"{_name(each)} is at {offset}, {_name(before[1])} at {before[0]}"
        last[each.writer, each.place] = (offset, each)
    for value, found in places.items():
        yield f"{value[:60]!r} at {found} was never sent"


def _is_twice(
    each: Written, found: list[tuple[Place, int]], history: History, final: Final
) -> bool:
    """Return whether the record is there more than once, and nothing excuses it.

    librdkafka numbers batches in flight again, under another epoch, when a broker has forgotten
    them or a topic is made anew: Kafka takes such a batch, too. No broker may write the same number
    twice.
    """
    if len(found) < 2 or LIBRDKAFKA not in each.writer:
        return len(found) > 1
    numbers = [final.numbers.get(place, {}).get(offset) for place, offset in found]
    is_numbered_again = None not in numbers and len(set(numbers)) == len(numbers)
    return not is_numbered_again and _is_of_this_topic(each, history)


def _name(each: Written) -> str:
    return f"{each.place}: {each.value.rstrip(b'.')!r} ({each.outcome}, {each.offset})"


def _is_of_this_topic(each: Written, history: History, *, longer_than_s: float = 0.0) -> bool:
    """Return whether the record was sent to the present topic of its name, when this topic had been
    there for some time.
    """
    made_s = history.made_s.get(each.place[0])
    return made_s is None or each.sent_s > made_s + longer_than_s


def _may_be_gone(each: Written, history: History, final: Final) -> bool:
    """Return whether something else than a loss may have removed an acknowledged record."""
    topic = each.place[0]
    if topic == topics.TRIMMED:
        start = final.start.get(each.place, 0)
        return each.offset < start <= history.trimmed.get(each.place, 0)
    if topic == topics.ANEW:
        return not _is_of_this_topic(each, history)
    return topic == topics.COMPACTED  # see `_keys`


def _transactions(history: History, final: Final) -> Iterator[str]:
    visible = {
        value
        for place, log in final.committed.items()
        for value in log.values()
        if place[0] == topics.COPIED
    }
    for each in history.transactions:
        there = [record for record in each.records if record.value in visible]
        missing = [record for record in each.records if record.value not in visible]
        if each.outcome == ACKED and missing:
            yield f"committed, and not there: {[_name(record) for record in missing]}"
        if each.outcome == ABORTED and there:
            yield f"not committed, and there: {[_name(record) for record in there]}"
        if there and missing:
            yield f"a part of a transaction: {[_name(r) for r in there]}, without {missing}"


def _keys(history: History, final: Final) -> Iterator[str]:
    sent: dict[tuple[Place, bytes], list[Written]] = defaultdict(list)
    for each in history.written:
        if each.place[0] == topics.COMPACTED and each.key is not None:
            sent[each.place, each.key].append(each)
    for (place, key), records in sent.items():
        acked = max((each.offset for each in records if each.outcome == ACKED), default=-1)
        offsets = [offset for offset, found in final.keys[place].items() if found == key]
        if max(offsets, default=-1) < acked:
            yield f"{place}: the record of {key!r} at {acked} is lost, there is {offsets[-3:]}"


def _reader(reader: Reader, history: History, final: Final) -> Iterator[str]:
    aborted = {
        record.value
        for each in history.transactions
        if each.outcome == ABORTED
        for record in each.records
    }
    logs = final.committed if reader.is_committed else final.everything
    for place, log in logs.items():
        if place[0] == topics.ANEW:
            continue
        got = reader.got.get(place, [])
        for before, after in zip(got, got[1:], strict=False):
            if after[0] <= before[0]:
                yield f"{reader.name}: {place} goes back from {before[0]} to {after[0]}"
        for offset, value in got:
            if log.get(offset, value) != value:
                yield f"{reader.name}: {place} {offset} is {value!r}, and {log[offset]!r} now"
            if reader.is_committed and value in aborted:
                yield f"{reader.name}: {place} {offset} {value!r} was aborted"
        left_out = log.keys() - {offset for offset, _ in got}
        if left_out:
            yield (
                f"{reader.name}: {place} left out {len(left_out)}, {min(left_out)} to "
                f"{max(left_out)}, is at {reader.position(place)}"
            )


def _group(group: Group, final: Final) -> Iterator[str]:
    yield from group.broken
    for place, log in final.everything.items():
        if place[0] != topics.PLAIN:
            continue
        left_out = log.keys() - group.got.get(place, set())
        if left_out:
            yield f"{group.name}: {place} left out {sorted(left_out)[:10]} of {len(left_out)}"
