"""Subscriptions by pattern: RE2 syntax, matched against whole topic names by the coordinator.

A pattern is matched beside the heartbeat that brought it: until then the member reads nothing by
it. All patterns of a group are matched again together, at most every 10 s: when one of them was
never matched, when the cluster's metadata has changed, or after the refresh interval.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

REFRESH_INTERVAL_MIN_MS = 10_000
"""Patterns of one group are matched no more often than this."""

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
"""What RE2 says of a pattern -> what RE2/J, which Kafka runs, says of it, where they differ."""

_LOOK_BEHIND = "invalid perl operator: (?<"
"""To RE2/J this begins the name of a group."""


class ResolvedRegex(Value):
    """The topics that a pattern matched, at some version of the metadata and some time."""

    topics: frozenset[str]
    version: int = 0
    timestamp_ms: int = 0


def check(regex: str) -> None:
    """Refuse a pattern that does not parse.

    Raises:
        InvalidRegularExpression: with RE2's reason.
    """
    _compile(regex)


def matching(regex: str, names: Iterable[str]) -> frozenset[str]:
    """The names that match as a whole. Linear in their length, whatever the pattern."""
    pattern = _compile(regex)
    return frozenset(name for name in names if pattern.fullmatch(name))


def _compile(regex: str) -> Any:
    # The engine is loaded with the first pattern: few groups have one.
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
