"""Subscriptions by pattern: RE2 syntax, matched against whole topic names by the coordinator.

A pattern is matched right after the heartbeat that brought it; until then it selects no topic. All
patterns of a group are matched again together, at most every 10 s: if one was never matched, if the
cluster's metadata has changed, or after the refresh interval.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

REFRESH_INTERVAL_MIN_MS = 10_000
"""Minimum time between two matches of a group's patterns."""

_MESSAGES = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "regexp/syntax: internal error",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}
"""RE2's message -> the message of RE2/J, which Kafka uses. Equal messages are not listed."""

_LOOK_BEHIND = "invalid perl operator: (?<"
"""Start of RE2's message for a look-behind. RE2/J mistakes it for the start of a named group."""


class ResolvedRegex(Value):
    """The topics that a pattern matched, and the metadata version at that match."""

    topics: frozenset[str]
    version: int = 0
    timestamp_ms: int = 0


def check(regex: str) -> None:
    """Raise InvalidRegularExpression, with RE2's reason, unless the pattern parses."""
    _compile(regex)


def matching(regex: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that match as a whole. Linear in their length, whatever the pattern."""
    pattern = _compile(regex)
    return frozenset(name for name in names if pattern.fullmatch(name))


def _compile(regex: str) -> Any:
    # Load the engine with the first pattern: few groups have one.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode() if isinstance(reason, bytes) else str(reason)
        kind = text.partition(": ")[0]
        if text.startswith(_LOOK_BEHIND):
            kind = "invalid named capture group"
        raise errors.InvalidRegularExpression(
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression:"
            f" {_MESSAGES.get(kind, kind)}.",
        ) from None
