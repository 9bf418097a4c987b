"""The check finds each kind of broken promise, and nothing in a history that is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.crash.nemesis import topics
from tests.crash.nemesis.check import broken
from tests.crash.nemesis.history import (
    ABORTED,
    ACKED,
    Final,
    Group,
    History,
    Place,
    Reader,
    Transaction,
)

PLAIN: Place = (topics.PLAIN, 0)
TRIMMED: Place = (topics.TRIMMED, 0)
COPIED: Place = (topics.COPIED, 0)
COMPACTED: Place = (topics.COMPACTED, 0)
ANEW: Place = (topics.ANEW, 0)


class Told:
    """A right history: two records a topic, one committed and one aborted transaction."""

    def __init__(self) -> None:
        self.history = History(made_s={topics.ANEW: 0.0})
        places = (PLAIN, TRIMMED, COPIED, COMPACTED, ANEW)
        logs = {place: {0: b"0 %s" % place[0].encode()} for place in places}
        for place, log in logs.items():
            if place != COPIED:
                log[1] = b"1 %s" % place[0].encode()
            for offset, value in log.items():
                written = self.history.write("w", value, place, b"key")
                written.outcome, written.offset = ACKED, offset
        committed = Transaction(
            "w", [each for each in self.history.written if each.place == COPIED]
        )
        committed.outcome = ACKED
        aborted = Transaction("w", [self.history.write("w", b"aborted", COPIED)])
        aborted.outcome = ABORTED
        self.history.transactions = [committed, aborted]
        everything = {place: dict(log) for place, log in logs.items()}
        everything[COPIED][2] = b"aborted"
        self.final = Final(
            dict.fromkeys(places, 0),
            logs,
            everything,
            {place: dict.fromkeys(log, b"key") for place, log in logs.items()},
        )
        for is_committed, shown in ((True, logs), (False, everything)):
            reader = Reader("r", is_committed)
            for place, log in shown.items():
                for offset, value in log.items():
                    reader.take(place, offset, value)
            self.history.readers.append(reader)
        group = Group("g")
        group.took("m", PLAIN, [0], None)
        group.stored({PLAIN: 1})
        group.took("m", PLAIN, [1], 1)
        self.history.groups = [group]

    def remove(self, place: Place, offset: int) -> None:
        """Let the log lack a record, and the readers not have seen it."""
        for log in (self.final.committed[place], self.final.everything[place]):
            log.pop(offset, None)
        self.final.keys[place].pop(offset, None)

    def add(self, place: Place, offset: int, value: bytes) -> None:
        """Give the log a record that all have read."""
        for log in (self.final.committed[place], self.final.everything[place]):
            log[offset] = value
        self.final.keys[place][offset] = b"key"
        for reader in self.history.readers:
            reader.take(place, offset, value)
        self.history.groups[0].took("m", place, [offset], None)

    @property
    def reader(self) -> Reader:
        return self.history.readers[0]


def test_a_right_history_is_not_broken() -> None:
    told = Told()
    assert broken(told.history, told.final) == []


def _lost(told: Told) -> None:
    told.remove(PLAIN, 1)


def _twice(told: Told) -> None:
    told.add(PLAIN, 2, b"1 plain")


def _never_sent(told: Told) -> None:
    told.add(PLAIN, 2, b"unknown")


def _out_of_order(told: Told) -> None:
    later = told.history.write("w", b"2 plain", PLAIN)
    told.history.write("w", b"3 plain", PLAIN)
    told.add(PLAIN, 2, b"3 plain")
    told.add(PLAIN, 3, later.value)


def _elsewhere(told: Told) -> None:
    told.history.written[0].offset = 7


def _removed_above_the_start(told: Told) -> None:
    told.history.trimmed[TRIMMED] = 1
    told.remove(TRIMMED, 1)


def _start_beyond_the_request(told: Told) -> None:
    told.history.trimmed[TRIMMED] = 1
    told.final.start[TRIMMED] = 2
    told.remove(TRIMMED, 1)


def _lost_of_the_new_topic(told: Told) -> None:
    told.remove(ANEW, 1)


def _last_of_a_key_lost(told: Told) -> None:
    told.remove(COMPACTED, 1)


def _committed_not_there(told: Told) -> None:
    told.history.transactions[0].records.append(told.history.write("w", b"missing", COPIED))


def _aborted_there(told: Told) -> None:
    told.final.committed[COPIED][2] = b"aborted"
    told.reader.take(COPIED, 2, b"aborted")


def _aborted_read(told: Told) -> None:
    told.reader.take(COPIED, 2, b"aborted")


def _a_part_of_a_transaction(told: Told) -> None:
    transaction = told.history.transactions[0]
    transaction.outcome = "unknown"
    transaction.records.append(told.history.write("w", b"missing", COPIED))


def _position_back(told: Told) -> None:
    told.reader.take(PLAIN, 0, b"0 plain")


def _left_out(told: Told) -> None:
    del told.reader.got[PLAIN][0]


def _changed(told: Told) -> None:
    told.reader.got[PLAIN][0] = (0, b"another")


def _before_the_commit(told: Told) -> None:
    told.history.groups[0].took("m", PLAIN, [0], 1)


def _never_given_to_the_group(told: Told) -> None:
    told.history.groups[0].got[PLAIN].discard(0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_lost, "is lost"),
        (_twice, "is there at"),
        (_never_sent, "was never sent"),
        (_out_of_order, "is at 2"),
        (_elsewhere, "is at 0"),
        (_removed_above_the_start, "is lost"),
        (_start_beyond_the_request, "is lost"),
        (_lost_of_the_new_topic, "is lost"),
        (_last_of_a_key_lost, "is lost"),
        (_committed_not_there, "committed, and not there"),
        (_aborted_there, "not committed, and there"),
        (_aborted_read, "was aborted"),
        (_a_part_of_a_transaction, "a part of a transaction"),
        (_position_back, "goes back"),
        (_left_out, "left out"),
        (_changed, "now"),
        (_before_the_commit, "was committed"),
        (_never_given_to_the_group, "left out"),
    ],
)
def test_each_broken_promise_is_found(change: Callable[[Told], None], words: str) -> None:
    told = Told()
    change(told)
    assert any(words in text for text in broken(told.history, told.final))


def test_what_the_nemesis_removed_is_no_loss() -> None:
    told = Told()
    told.history.trimmed[TRIMMED] = told.final.start[TRIMMED] = 1
    told.history.made_s[topics.ANEW] = float("inf")
    for place in (TRIMMED, ANEW, COMPACTED):
        told.remove(place, 0)
    assert broken(told.history, told.final) == []
