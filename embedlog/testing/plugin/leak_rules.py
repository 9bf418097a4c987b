"""What happens to the leaks of a test: the setting `embedlog_leaks`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from embedlog.errors import ConfigError
from embedlog.testing.leaks import KINDS, Leak
from embedlog.testing.names import hint

_ACTIONS = ("off", "warn", "fail")
DEFAULTS = {
    "connections": "warn",
    "errors": "fail",
    # Libraries start threads at their first use, and keep them.
    "threads": "off",
    "transactions": "warn",
}


def leak_rules(*given: Any) -> dict[str, str]:
    """Return kind of leak -> "off", "warn" or "fail". Later arguments win.

    Each is a word for all kinds, or `KIND=WORD` texts, or a dict.

    >>> leak_rules(["threads=warn"])["threads"]
    'warn'

    Raises:
        ConfigError: a kind or a word is unknown.
    """
    rules = dict(DEFAULTS)
    for each in given:
        for kind, action in _pairs(each):
            if action not in _ACTIONS:
                near = hint(action, _ACTIONS)
                raise ConfigError(f"leaks {kind or 'of all kinds'}: {action!r} is unknown; {near}")
            if kind and kind not in KINDS:
                raise ConfigError(f"leaks: kind {kind!r} is unknown; {hint(kind, KINDS)}")
            rules.update(dict.fromkeys([kind] if kind else KINDS, action))
    return rules


def _pairs(given: Any) -> Iterable[tuple[str, str]]:
    if isinstance(given, Mapping):
        return list(given.items())
    words = given.split() if isinstance(given, str) else [w for each in given for w in each.split()]
    return [
        (kind, action) if is_pair else ("", kind)
        for kind, is_pair, action in (word.partition("=") for word in words)
    ]


def report(leaks: Iterable[Leak], rules: Mapping[str, str]) -> list[str]:
    """Warn of some leaks, and return the texts of leaks that fail the test."""
    from warnings import warn

    from embedlog.testing.leaks import LeakWarning

    failing = []
    for each in leaks:
        if rules[each.kind] == "fail":
            failing.append(str(each))
        elif rules[each.kind] == "warn":
            warn(f"the test left behind {each}", LeakWarning, stacklevel=2)
    return failing
