"""Checks of the arguments that users pass to the calls of clients.

Each check takes the value, the name of the call and the name of the argument, and returns the value
in the form that the client works with. Its error names the argument, the value and the expected
type:

    delete_topics(topics='jobs'): expected a list of topic names, got one str; write ['jobs']

A wrong type raises `WrongType`, a value out of range ValueError. The broker decides whether a topic
or partition exists.
"""

from __future__ import annotations

from _operator import index

from embedlog.common import TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

LONG_MAX = 2**63 - 1
_INT_MAX = 2**31 - 1
_SHOWN_MAX = 80
_PAIR = 2


class WrongType(TypeError, ValueError):
    """An argument is not of the type that the call takes.

    It is a TypeError by its meaning, and also a ValueError, so that one `except ValueError` catches
    every wrong argument.
    """


_PARTITIONS = "partitions, as TopicPartition or (topic, partition)"


def topic_name(value: Any, call: str, argument: str = "topic") -> str:
    """Check a topic's name: a str that is not blank.

    The broker decides whether the name is legal; `embedlog.topic_names` explains its refusal.
    """
    if not isinstance(value, str):
        _refuse(value, call, argument, "a topic's name as str")
    if not value or value.isspace():
        raise ValueError(f"{call}({argument}={value!r}): a topic's name must not be empty")
    return value


def name(value: Any, call: str, argument: str, *, what: str = "a name") -> str:
    """Check a name that is not a topic's: a str, which may be empty."""
    if not isinstance(value, str):
        _refuse(value, call, argument, f"{what} as str")
    return value


def names(
    value: Any,
    call: str,
    argument: str,
    *,
    what: str = "topic names",
    kinds: tuple[type, ...] = (str,),
) -> list[Any]:
    """Check a list of names, or of items of the types `kinds`; a single str is refused."""
    if isinstance(value, bytes | bytearray) and bytes not in kinds:
        _refuse(value, call, argument, f"a list of {what}")
    items = several(value, call, argument, what)
    for position, each in enumerate(items):
        if not isinstance(each, kinds) or isinstance(each, bool):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            expected = f"{what} as str" if kinds == (str,) else wanted
            _refuse(each, call, f"{argument}[{position}]", expected)
        if isinstance(each, str) and what == "topic names":
            topic_name(each, call, f"{argument}[{position}]")
    return items


def several(value: Any, call: str, argument: str, what: str) -> list[Any]:
    """Return the items of any iterable except a single text, bytes or topic partition."""
    if isinstance(value, str | bytes | bytearray | memoryview | TopicPartition):
        kind = type(value).__name__
        raise WrongType(
            f"{call}({argument}={shown(value)}): expected a list of {what}, got one {kind}; "
            f"write [{shown(value)}]"
        )
    if not hasattr(value, "__iter__"):
        _refuse(value, call, argument, f"a list of {what}")
    return list(value)


def mapping(value: Any, call: str, argument: str, what: str) -> Mapping[Any, Any]:
    """Check a dict, or another object with keys and items."""
    if not hasattr(value, "items") or not hasattr(value, "keys"):
        _refuse(value, call, argument, f"a dict of {what}")
    found: Mapping[Any, Any] = value
    return found


def partition(value: Any, call: str, argument: str = "partition") -> TopicPartition:
    """Check one partition, given as TopicPartition or (topic, partition)."""
    if isinstance(value, str | bytes) or not hasattr(value, "__len__") or len(value) != _PAIR:
        _refuse(value, call, argument, "a TopicPartition or (topic, partition)")
    topic, number = value
    topic_name(topic, call, argument if topic is value else f"{argument}: topic")
    return TopicPartition(topic, partition_number(number, call, f"{argument}: partition"))


def partitions(
    value: Any, call: str, argument: str = "partitions", *, what: str = _PARTITIONS
) -> list[TopicPartition]:
    """Check a list of partitions, each given as TopicPartition or (topic, partition)."""
    if isinstance(value, str):
        raise WrongType(
            f"{call}({argument}={shown(value)}): expected a list of {what}, got one str; "
            f"write [({shown(value)}, 0)] for its partition 0"
        )
    if _is_one_partition(value):
        raise WrongType(
            f"{call}({argument}={value!r}): expected a list of {what}, got a single one; "
            f"write [{value!r}]"
        )
    items = several(value, call, argument, what)
    return [partition(each, call, f"{argument}[{position}]") for position, each in enumerate(items)]


def each_partition(given: tuple[Any, ...], call: str) -> list[TopicPartition]:
    """Check partitions that a call takes one by one, `call(*partitions)`, not as a list."""
    for each in given:
        if isinstance(each, list | set | frozenset | dict) or (
            isinstance(each, tuple) and each and isinstance(each[0], tuple)
        ):
            raise WrongType(
                f"{call}({shown(each)}): expected partitions one by one, got a "
                f"{type(each).__name__} of them; write {call}(*partitions)"
            )
    return [partition(each, call, f"partitions[{number}]") for number, each in enumerate(given)]


def by_partition(value: Any, call: str, argument: str, what: str) -> dict[TopicPartition, Any]:
    """Check a dict whose keys are partitions; return its values unchanged."""
    given = mapping(value, call, argument, f"partition: {what}")
    return {partition(key, call, f"{argument}: key"): each for key, each in given.items()}


def partition_number(value: Any, call: str, argument: str = "partition") -> int:
    """Check the number of a partition, from 0."""
    return _whole(value, call, argument, "a partition's number as int", 0, _INT_MAX)


def partition_count(value: Any, call: str, argument: str) -> int:
    """Check the number of partitions of a new topic; the broker decides which numbers it takes."""
    return _whole(value, call, argument, "a number of partitions as int", -_INT_MAX, _INT_MAX)


def offset(value: Any, call: str, argument: str = "offset", *, lowest: int = 0) -> int:
    """Check an offset: a whole number, at least `lowest`."""
    return _whole(value, call, argument, "an offset as int", lowest, LONG_MAX)


def timestamp_ms(
    value: Any,
    call: str,
    argument: str = "timestamp_ms",
    *,
    lowest: int = 0,
    alternative: str = "",
) -> int:
    """Check whole milliseconds since 1970; `time.time()` gives seconds, as a float.

    `alternative` names other numbers that the call takes.
    """
    expected = f"{alternative}milliseconds since 1970 as int, such as int(time.time() * 1000)"
    return _whole(value, call, argument, expected, lowest, LONG_MAX)


def count(value: Any, call: str, argument: str, *, lowest: int = 1) -> int:
    """Check a number of things: a whole number, at least `lowest`."""
    return _whole(value, call, argument, "a whole number as int", lowest, _INT_MAX)


def number(value: Any, call: str, argument: str, what: str, *, lowest: int) -> int:
    """Check a whole number, at least `lowest`; `what` describes it in errors."""
    return _whole(value, call, argument, what, lowest, LONG_MAX)


def timeout_ms(value: Any, call: str, argument: str = "timeout_ms") -> int:
    """Check the longest wait of a call, in milliseconds."""
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        _refuse(value, call, argument, "milliseconds as int")
    if not 0 <= value <= LONG_MAX:
        raise ValueError(f"{call}({argument}={value!r}): must not be negative, nor endless")
    return int(value)


def optional_timeout_ms(value: Any, call: str, argument: str = "timeout_ms") -> int | None:
    """Check as `timeout_ms` does; None means the client's default."""
    return None if value is None else timeout_ms(value, call, argument)


def timeout_s(value: Any, call: str, argument: str = "timeout") -> float | None:
    """Check the longest wait of a call, in seconds; None means the call's default."""
    if value is None:
        return None
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        _refuse(value, call, argument, "seconds as a number")
    if not 0 <= value <= LONG_MAX:
        raise ValueError(f"{call}({argument}={value!r}): must not be negative, nor endless")
    return float(value)


def callback(value: Any, call: str, argument: str, expected: str = "a function") -> Any:
    """Check a callable, or None."""
    if value is not None and not callable(value):
        _refuse(value, call, argument, f"{expected}, or None")
    return value


def shown(value: object) -> str:
    """Return the value's repr, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


def _is_one_partition(value: Any) -> bool:
    return isinstance(value, TopicPartition) or (
        isinstance(value, tuple)
        and len(value) == _PAIR
        and isinstance(value[0], str)
        and isinstance(value[1], int)
    )


def setting_text(value: Any) -> str | None:
    """Return a setting's value as Kafka writes it, such as "true" or "a,b"; None stays None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(str(each) for each in value)
    return str(value)


def _whole(  # noqa: PLR0917  the value, its name, its range
    value: Any, call: str, argument: str, expected: str, lowest: int, highest: int
) -> int:
    if type(value) is not int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            _refuse(value, call, argument, expected)
        value = index(value)
    if value < lowest:
        limit = "must not be negative" if lowest == 0 else f"must be at least {lowest}"
        raise ValueError(f"{call}({argument}={value}): {limit}")
    if value > highest:
        raise ValueError(f"{call}({argument}={value}): must be at most {highest}")
    found: int = value
    return found


def _refuse(value: Any, call: str, argument: str, expected: str) -> NoReturn:
    kind = type(value).__name__
    raise WrongType(f"{call}({argument}={shown(value)}): expected {expected}, got {kind}")
