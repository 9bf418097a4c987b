"""The promises of a share group, checked for each offset of a history.

delivery counts       no count above the limit; within a term of the share partition each delivery
                      counts one more; a new term goes on from a count that was stored, so that a
                      released record never loses its count, and invents none
once accepted         after an acknowledgement was answered with success, never again
one holder            nobody gets a record, or acknowledges it, while another member surely holds it
at least once         every record that still exists in the end was delivered
none is lost          and was given up only by a member's word, or delivered for the last time
aborted data          is never delivered to a group that reads committed records
start offset          every record below it is over
order of keys         if the group wants it: no record is delivered before an earlier one of its key
                      is over, so that no two of one key are in work at once
dead letters          each rejected or exhausted record has one with its cause, and no other has one
in the end            no lag
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.golden.sharing_requests import ACCEPT, GAP, REJECT, RELEASE, RENEW
from tests.simulation.cluster.client import Place
from tests.simulation.share.history import FINAL_TYPES, NEVER, Delivery, History, Said

REJECTED = "Offset rejected by client."
EXHAUSTED = "Offset delivery count exceeded the threshold."


def broken(history: History) -> list[str]:
    """Return the broken promises."""
    given: dict[tuple[Place, int], list[Delivery]] = defaultdict(list)
    said: dict[tuple[Place, int], list[Said]] = defaultdict(list)
    for delivery in history.deliveries:
        for offset in range(delivery.first, delivery.last + 1):
            given[delivery.place, offset].append(delivery)
    for each in history.said:
        for offset in each.types:
            said[each.place, offset].append(each)
    found = list(history.notes)
    records = {at: Record(history, at[0], at[1], given[at], said[at]) for at in history.offsets()}
    for (place, offset), record in records.items():
        found += [f"{place[0]}-{place[1]} {offset}: {what}" for what in record.broken()]
    if history.is_ordered:
        found += _out_of_order(list(records.values()))
    for place, lag in history.lags.items():
        if lag != 0:
            found.append(f"{place}: the lag is {lag} in the end")
    return found


def _out_of_order(records: list[Record]) -> Iterator[str]:
    """Return the deliveries before the end of an earlier record of the same key."""
    of_key: dict[tuple[Place, bytes | None], list[Record]] = defaultdict(list)
    for record in records:
        key = record.content.keys.get(record.offset)
        if key is not None and record.is_there:
            of_key[record.place, key].append(record)
    for (place, key), rows in of_key.items():
        for later in rows:
            for each in later.given:
                for earlier in rows:
                    if earlier.offset < later.offset and not earlier.may_be_over(each.span.done):
                        yield (
                            f"{place[0]}-{place[1]} {later.offset}: delivery {each.count} to"
                            f" {each.member} before {earlier.offset}, also of {key!r}, is over"
                        )


class Record:
    """The history of one offset."""

    def __init__(
        self,
        history: History,
        place: Place,
        offset: int,
        given: list[Delivery],
        said: list[Said],
    ) -> None:
        self.history = history
        self.place = place
        self.offset = offset
        self.given = sorted(given, key=lambda each: each.count)
        self.said = said
        self.content = history.content[place]
        cut = max(history.cut.get(place, 0), self.content.log_start)
        self.is_there = offset in self.content.records and offset >= cut
        self.is_cut = offset < cut

    def broken(self) -> Iterator[str]:
        """Return the broken promises."""
        yield from self._counts()
        yield from self._again()
        yield from self._holders()
        if self.is_there:
            yield from self._lost()
            yield from self._letters()
        for each in self.history.described:
            is_below = each.place == self.place and self.offset < each.start
            if self.is_there and is_below and not self.may_be_over(each.done):
                yield f"the start was {each.start} although it was not over"

    def may_be_over(self, done: int = NEVER + 1) -> bool:
        """Return whether the record may have been over at this moment."""
        if self.offset in self.content.aborted and self.history.is_committed_only:
            return True
        limit = self.history.delivery_limit
        return any(
            each.may_be_done and each.span.begun < done and each.types[self.offset] in FINAL_TYPES
            for each in self.said
        ) or any(each.count >= limit and each.span.begun < done for each in self.given)

    def _counts(self) -> Iterator[str]:
        slack = self.history.unanswered
        for each in self.given:
            if each.count > self.history.delivery_limit:
                yield f"delivery {each.count} to {each.member} is above the limit"
        by_term: dict[int, list[Delivery]] = defaultdict(list)
        for each in self.given:
            if each.term is not None:
                by_term[each.term].append(each)
        for term, deliveries in by_term.items():
            counts = [each.count for each in deliveries]
            if len(set(counts)) < len(counts):
                yield f"deliveries {counts} in one term"
            if counts[-1] - counts[0] + 1 > len(counts) + slack:
                yield f"deliveries {counts} in one term leave a number out"
            for one in deliveries:
                for other in deliveries:
                    if one.span.done < other.span.begun and one.count >= other.count:
                        yield f"delivery {other.count} after delivery {one.count}"
            first = deliveries[0]
            before = [
                each.count
                for each in self.given
                if each.term != term and each.span.begun < first.span.done
            ]
            if first.count > max(before, default=0) + 1 + slack:
                yield f"a term begins with delivery {first.count} after {before}"
        for each in self.said:
            if each.is_done and each.types[self.offset] == RELEASE:
                yield from self._released(each)

    def _released(self, each: Said) -> Iterator[str]:
        """Check that the count of a released record is kept."""
        count = self._last_count(each)
        for later in self.given:
            if later.span.begun > each.span.done and later.count <= count:
                yield f"delivery {later.count} after {each.member} released delivery {count}"

    def _last_count(self, each: Said) -> int:
        own = [
            one
            for one in self.given
            if one.member == each.member and one.span.done < each.span.begun
        ]
        return max(own, key=lambda one: one.span.done).count if own else 0

    def _again(self) -> Iterator[str]:
        for each in self.said:
            kind = each.types[self.offset]
            if each.is_done and kind in FINAL_TYPES:
                for later in self.given:
                    if later.span.begun > each.span.done:
                        yield (
                            f"delivery {later.count} to {later.member} after {each.member}'s "
                            f"type {kind} was answered with success"
                        )
        if self.history.is_committed_only and self.offset in self.content.aborted and self.given:
            yield "aborted data was delivered"

    def _holders(self) -> Iterator[str]:
        for held in self.given:
            if held.term is None:
                continue
            until, until_ms = self._surely_held(held)
            for other in self.given:
                if (
                    other is not held
                    and other.term == held.term
                    and held.span.done < other.span.begun
                    and other.span.done < until
                    and other.span.done_ms < until_ms
                ):
                    yield f"{other.member} got it while {held.member} held it"
            for each in self.said:
                if (
                    each.is_done
                    and not self.is_cut
                    and each.member != held.member
                    and each.term == held.term
                    and held.span.done < each.span.begun
                    and each.span.done < until
                    and each.span.done_ms < until_ms
                ):
                    yield f"{each.member} acknowledged it while {held.member} held it"

    def _surely_held(self, held: Delivery) -> tuple[int, int]:
        """Return until when the member surely had the record: an order number, a time."""
        until = NEVER
        for ending in self.history.endings:
            if ending.member == held.member and ending.begun > held.span.begun:
                until = min(until, ending.begun)
        until_ms = held.span.begun_ms + self.history.lock_ms
        own = [
            each
            for each in self.said
            if each.member == held.member and each.span.done > held.span.begun
        ]
        for each in own:
            if each.types[self.offset] != RENEW:
                until = min(until, each.span.begun)
        for each in sorted(own, key=lambda each: each.span.begun):
            is_renewed = each.is_done and each.term == held.term
            is_in_time = held.span.done < each.span.begun and each.span.done_ms < until_ms
            if each.types[self.offset] == RENEW and is_renewed and is_in_time:
                until_ms = each.span.begun_ms + self.history.lock_ms
        return until, until_ms

    def _lost(self) -> Iterator[str]:
        if self.offset in self.content.aborted and self.history.is_committed_only:
            return
        if not self.given:
            yield "it was never delivered"
        elif not self.may_be_over():
            yield "it is over, but nobody said so, and the limit was not reached"

    def _letters(self) -> Iterator[str]:
        history, offset = self.history, self.offset
        messages = {
            each.message
            for each in history.letters
            if each.place == self.place and each.offset == offset
        }
        may = [each for each in self.said if each.may_be_done]
        may_be_rejected = any(each.types[offset] == REJECT for each in may)
        may_be_quiet = any(each.types[offset] in (ACCEPT, GAP) for each in may)
        may_be_exhausted = any(each.count >= history.delivery_limit for each in self.given)
        if REJECTED in messages and not may_be_rejected:
            yield "a dead letter says that it was rejected"
        if EXHAUSTED in messages and not may_be_exhausted:
            yield "a dead letter says that it was exhausted"
        is_aborted = offset in self.content.aborted and history.is_committed_only
        if history.has_letters and not (messages or may_be_quiet or is_aborted):
            yield "it has no dead letter"
