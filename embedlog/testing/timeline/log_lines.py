"""Log lines of the brokers as events: the kind by the words of the line, and the reason in it."""

from __future__ import annotations

import re

_KINDS = (
    ("session", ("session expired", "was not heard of", "did not join again", "in time")),
    ("fence", ("fences", "fenced")),
    ("election", ("leader",)),
    ("rebalance", ("rebalance", "stabilized group", "is assigned", "is empty")),
    ("group", ("group", "member")),
    ("transaction", ("transaction", "markers")),
    ("topic", ("topic", "settings of")),
    ("broker", ("broker", "feature", "director")),
)
"""Kind -> words of a line, in the order in which they are tried."""

_REASON = re.compile(r" \(reason: (.*)\)$", re.S)


def kind_of(message: str) -> str:
    """Return the kind of event of a log line, from its words before the values are put in."""
    for kind, words in _KINDS:
        if any(word in message for word in words):
            return kind
    return "log"


def split_reason(text: str) -> tuple[str, str]:
    """Return a line without its reason, and the reason."""
    found = _REASON.search(text)
    if found is None:
        head, separator, tail = text.partition(": ")
        is_reason = separator and any(word in head for word in ("fences", "failed", "removed"))
        return (head, tail) if is_reason else (text, "")
    return text[: found.start()], found.group(1)
