"""The arguments of `Kafka.fault`, and the parts of a rule that they describe."""

from __future__ import annotations

from typing import Literal, TypedDict

from embedlog.errors import ConfigError
from embedlog.testing.faults.actions import Action, Cut, Delay, Hang, Refuse
from embedlog.testing.faults.answers import (
    Answer,
    Corrupt,
    Stale,
    Throttle,
    Truncate,
    WrongEpoch,
)
from embedlog.testing.faults.matching import Matcher
from embedlog.testing.faults.names import error_of
from embedlog.testing.faults.refusals import can_refuse
from embedlog.testing.faults.triggers import Trigger, trigger_of
from embedlog.testing.faults.user_code import Guarded
from embedlog.testing.names import hint
from wire.api_keys import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.controller.metadata import MetadataImage
    from embedlog.testing.faults.matching import Numbers, Text
    from embedlog.testing.faults.names import ErrorGiven
    from embedlog.testing.faults.waiting import Waiting


class MatchOptions(TypedDict, total=False):
    """The arguments that choose requests."""

    node: Numbers
    topic: Text
    partition: Numbers
    group: Text
    transactional_id: Text
    client_id: Text
    principal: Text
    resource: Text
    where: Callable[[Any], Any]
    versions: int | tuple[int, int] | range
    internal: bool


class TriggerOptions(MatchOptions, total=False):
    """Further arguments: when a rule acts."""

    once: bool
    nth: int
    times: int
    always: bool
    chance: float
    seed: int
    may_miss: bool


ActionName = Literal[
    "cut",
    "cut-after-apply",
    "delay",
    "throttle",
    "hang",
    "corrupt-crc",
    "truncate",
    "stale-metadata",
    "wrong-epoch",
]


class FaultOptions(TriggerOptions, total=False):
    """Further arguments: what a rule does."""

    error: ErrorGiven
    action: ActionName
    answer: Callable[[Any, Any], Any]
    after_apply: bool
    seconds: float
    ms: int
    by: int


TEXTS = ("topic", "group", "transactional_id", "client_id", "principal", "resource")
NUMBERS = ("node", "partition")
MATCHERS = (*TEXTS, *NUMBERS, "where", "versions", "internal")
TRIGGERS = ("once", "nth", "times", "always", "chance", "seed", "may_miss")
ACTIONS = ("error", "action", "answer", "after_apply", "seconds", "ms", "by")

_ACTION_NAMES: dict[str, tuple[str, ...]] = {
    "cut": ("after_apply",),
    "cut-after-apply": (),
    "delay": ("seconds", "after_apply"),
    "throttle": ("ms",),
    "hang": ("after_apply",),
    "corrupt-crc": (),
    "truncate": (),
    "stale-metadata": (),
    "wrong-epoch": ("by",),
    "error": ("after_apply",),
    "answer": (),
}
"""Action -> its further arguments. "error" and "answer" are arguments of their own."""


def check_names(given: dict[str, Any], known: tuple[str, ...]) -> None:
    """Refuse unknown arguments.

    Raises:
        ConfigError: an argument is unknown.
    """
    for name, value in given.items():
        if name not in known:
            raise ConfigError(
                f"{name}={value!r:.80}: there is no such argument; {hint(name, known)}"
            )


def matcher_of(apis: tuple[str, ...], given: dict[str, Any]) -> Matcher:
    """Return the matcher that the arguments describe; raises as `Matcher`."""
    return Matcher(
        apis,
        texts={name: given[name] for name in TEXTS if given.get(name) is not None},
        numbers={name: given[name] for name in NUMBERS if given.get(name) is not None},
        where=given.get("where"),
        versions=given.get("versions"),
        internal=bool(given.get("internal", False)),
    )


def triggered(given: dict[str, Any]) -> Trigger:
    """Return the trigger that the arguments describe; raises as `trigger_of`."""
    return trigger_of(
        once=given.get("once"),
        nth=given.get("nth"),
        times=given.get("times"),
        always=given.get("always"),
        chance=given.get("chance"),
        seed=given.get("seed"),
    )


def action_of(
    given: dict[str, Any], waiting: Waiting, image: Callable[[], MetadataImage]
) -> Action:
    """Return the action that the arguments describe. `image()` is the present metadata.

    Raises:
        ConfigError: there is no such action, or it lacks an argument, or has one too many.
    """
    kinds = [name for name in ("error", "action", "answer") if given.get(name) is not None]
    if len(kinds) != 1:
        told = " and ".join(kinds) or "nothing"
        raise ConfigError(f"a rule needs one of error=, action= and answer=, and got {told}")
    kind = kinds[0]
    name = given["action"] if kind == "action" else kind
    if kind == "action" and (name not in _ACTION_NAMES or name in ("error", "answer")):
        known = [each for each in _ACTION_NAMES if each not in ("error", "answer")]
        raise ConfigError(f"action={name!r}: there is no such action; {hint(name, known)}")
    for further in ("after_apply", "seconds", "ms", "by"):
        if given.get(further) is not None and further not in _ACTION_NAMES[name]:
            takers = [each for each, names in _ACTION_NAMES.items() if further in names]
            raise ConfigError(
                f"{further}={given[further]!r}: {name!r} does not take it; "
                f"these do: {', '.join(takers)}"
            )
    after_apply = bool(given.get("after_apply"))
    if name == "error":
        return Refuse(error_of(given["error"]), after_apply=given.get("after_apply"))
    if name == "answer":
        if not callable(given["answer"]):
            raise ConfigError(f"answer={given['answer']!r}: expected a function")
        return Answer(Guarded(given["answer"]))
    if name in ("cut", "cut-after-apply"):
        return Cut(after_apply=after_apply or name == "cut-after-apply")
    if name == "delay":
        return Delay(waiting, _positive("seconds", given), after_apply=after_apply)
    if name == "throttle":
        return Throttle(int(_positive("ms", given)))
    if name == "hang":
        return Hang(waiting, after_apply=after_apply)
    if name == "stale-metadata":
        return Stale(image())
    if name == "wrong-epoch":
        by = given.get("by", -1)
        if not isinstance(by, int) or by == 0:
            raise ConfigError(f"by={by!r}: expected a number to add to the epochs, not 0")
        return WrongEpoch(by)
    return Corrupt() if name == "corrupt-crc" else Truncate()


def fit(matcher: Matcher, action: Action, *, is_named: bool) -> None:
    """Limit a rule to APIs that can do the action.

    Raises:
        ConfigError: a named API cannot do it.
    """

    def can(api_key: int) -> bool:
        if isinstance(action, Refuse):
            return can_refuse(api_key)
        if isinstance(action, Throttle):
            return action.can(api_key)
        return action.apis is None or api_key in action.apis

    able = tuple(key for key in matcher.api_keys if can(key))
    unable = [NAMES[key] for key in matcher.api_keys if key not in able]
    if unable and (is_named or not able):
        instead = (
            ""
            if action.apis is None
            else (f"; these can: {', '.join(sorted(NAMES[key] for key in action.apis))}")
        )
        raise ConfigError(f"{action}: {', '.join(unable)} cannot do it{instead}")
    matcher.api_keys = able


def _positive(name: str, given: dict[str, Any]) -> float:
    value = given.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        raise ConfigError(
            f"action={given['action']!r} needs {name}=, a number above 0, and got {value!r}"
        )
    return value
