"""`RuleStage`: the rules between the requests and the brokers.

A request meets only the rules of its API that want its topic, group, transactional id or client, or
that want none in particular. So a hundred rules for other requests cost a look into a few tables.
"""

from __future__ import annotations

from operator import attrgetter

from embedlog.testing.faults.matching import (
    Seen,
    groups_in,
    is_internal,
    reader_of,
    topics_in,
    transactions_in,
)
from wire.api_keys import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from embedlog.testing.faults.rule import FaultRule
    from embedlog.testing.interception import Call, Proceed

_REMEMBERED = 16
_KEPT_MAX = 128
_INDEXED = ("client_id", "group", "transactional_id", "topic")
"""Matchers by whose names rules are found; a rule is found by the first that it has."""


class RuleStage:
    """The stage of all rules of a cluster, made anew for each change of the rules."""

    def __init__(self, rules: Sequence[FaultRule], before: RuleStage | None) -> None:
        """`before` is the stage in whose place this one comes: it knows the earlier requests."""
        self._tables: dict[int, _Table] = {}
        self.counts: dict[int, int] = {} if before is None else before.counts
        """API -> the number of requests for which there was no rule."""
        for rule in rules:
            for api_key in rule.matcher.api_keys:
                table = self._tables.get(api_key)
                if table is None:
                    known = None if before is None else before.table(api_key)
                    table = self._tables[api_key] = _Table(api_key, known)
                table.add(rule)

    def __call__(self, call: Call, proceed: Proceed) -> Any:
        """Let the rules of a request answer it, the oldest rule first."""
        api_key = call.context.api_key
        table = self._tables.get(api_key)
        if table is None:
            self.counts[api_key] = self.counts.get(api_key, 0) + 1
            return proceed(call)
        rules = table.candidates(call)
        return _through(rules, 0, call, proceed) if rules else proceed(call)

    def table(self, api_key: int) -> _Table | None:
        """Return the rules of an API; None if it has none."""
        return self._tables.get(api_key)

    def near(self, rule: FaultRule) -> list[str]:
        """Return lines about requests of the rule's APIs, and why they did not match."""
        lines: dict[str, int] = {}
        seen_apis = set()
        for api_key in rule.matcher.api_keys:
            table = self._tables.get(api_key)
            for seen in () if table is None else table.seen_since(rule.number):
                seen_apis.add(api_key)
                why = rule.matcher.why_not(seen)
                if why:
                    line = f"{NAMES[api_key]}: {why}"
                    lines[line] = lines.get(line, 0) + 1
        found = [f"{count} x {line}" for line, count in lines.items()]
        if not seen_apis:
            others = sorted(self.counts.items(), key=lambda each: -each[1])
            shown = ", ".join(f"{NAMES[key]} {count}" for key, count in others[:8])
            found.append(f"no such request came; others were: {shown or 'none'}")
        return found


class _Table:
    """The rules of one API, by the names that they want."""

    __slots__ = ("_any", "_api_key", "_left", "_newest", "_readers", "_seen", "_tables")

    def __init__(self, api_key: int, before: _Table | None) -> None:
        self._api_key = api_key
        self._any: list[FaultRule] = []
        """Rules that cannot be found by a name."""
        self._tables: dict[str, dict[str, list[FaultRule]]] = {}
        self._readers: list[tuple[Callable[[Call], Sequence[str]], dict[str, list[FaultRule]]]] = []
        self._newest = 0
        self._seen: list[tuple[int, Seen]] = [] if before is None else before.seen[-_KEPT_MAX:]
        """(number of the newest rule at that time, request) of the first requests after each change
        of the rules."""
        self._left = _REMEMBERED

    @property
    def seen(self) -> list[tuple[int, Seen]]:
        return self._seen

    def add(self, rule: FaultRule) -> None:
        """Add a rule; rules come in the order of their numbers."""
        self._newest = rule.number
        for name in _INDEXED:
            wanted = rule.matcher.exact(name)
            if wanted is not None:
                table = self._tables.setdefault(name, {})
                for each in wanted:
                    table.setdefault(each, []).append(rule)
                break
        else:
            self._any.append(rule)
        self._readers = [
            (reader_of(name, self._api_key), table) for name, table in self._tables.items()
        ]

    def candidates(self, call: Call) -> list[FaultRule]:
        """Return the rules that may match a request, the oldest first."""
        if self._left > 0:
            self._left -= 1
            self._seen.append((self._newest, _summary(call)))
        found = self._any
        for read, table in self._readers:
            for value in read(call):
                wanted = table.get(value)
                if wanted is not None:
                    found = found + wanted if found else wanted
        if len(found) > 1 and found is not self._any:
            return sorted(set(found), key=_number)
        return found

    def seen_since(self, number: int) -> list[Seen]:
        """Return requests that came since the rule of this number was made."""
        return [seen for newest, seen in list(self._seen) if newest >= number]


_number = attrgetter("number")


def _summary(call: Call) -> Seen:
    return (
        call.broker.node_id,
        call.context.client_id or "",
        is_internal(call),
        tuple(topics_in(call)),
        tuple(groups_in(call)),
        tuple(transactions_in(call)),
    )


def _through(rules: Sequence[FaultRule], number: int, call: Call, proceed: Proceed) -> Any:
    """Let the rules from `number` on answer, and the next stage if all of them pass it on."""
    if number == len(rules):
        return proceed(call)
    return rules[number].handle(call, lambda passed: _through(rules, number + 1, passed, proceed))
