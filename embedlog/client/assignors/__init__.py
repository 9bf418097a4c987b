"""Assignors decide how the members of a classic group share partitions. `resolve` finds them."""

from __future__ import annotations

from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from embedlog.client.assignors.assignor import Assignor

_HOMES = {
    "range": ("range", "RangeAssignor"),
    "roundrobin": ("round_robin", "RoundRobinAssignor"),
    "sticky": ("sticky", "StickyAssignor"),
    "cooperative-sticky": ("cooperative_sticky", "CooperativeStickyAssignor"),
}
_JAVA_PREFIX = "org.apache.kafka.clients.consumer."


def resolve(given: Iterable[Any]) -> list[Assignor]:
    """Return assignors in the order of `given`: names, Kafka's class names or objects.

    An item may also be a class, which is called without arguments.

    Raises:
        ConfigError: the list is empty, a name is unknown, or two assignors have one name.
    """
    found = [_resolve(each) for each in given]
    names = [each.name for each in found]
    if not found or len(set(names)) < len(names) or not all(names):
        raise ConfigError(
            f"partition.assignment.strategy: names {names} must differ and not be empty"
        )
    return found


def rebalance_protocol(assignors: Iterable[Assignor]) -> int:
    """Return the highest protocol that all assignors support: EAGER or COOPERATIVE.

    Raises:
        ConfigError: the assignors have no protocol in common.
    """
    common = set.intersection(*(set(_protocols(each)) for each in assignors))
    if not common:
        raise ConfigError("partition.assignment.strategy: no rebalance protocol in common")
    return max(common)


def _protocols(assignor: Assignor) -> tuple[int, ...]:
    return tuple(getattr(assignor, "protocols", (0,)))


def _resolve(given: Any) -> Assignor:
    if isinstance(given, str):
        by_class = {home[1]: name for name, home in _HOMES.items()}
        name = by_class.get(given.removeprefix(_JAVA_PREFIX), given)
        if name not in _HOMES:
            raise ConfigError(
                f"partition.assignment.strategy={given!r}: not one of {', '.join(_HOMES)}, "
                f"nor an object with a name and assign()"
            )
        module, class_name = _HOMES[name]
        path = f"{__name__}.{module}"
        made: Assignor = getattr(__import__(path, fromlist=(class_name,)), class_name)()
        return made
    assignor: Assignor = given() if isinstance(given, type) else given
    if not callable(getattr(assignor, "assign", None)) or not getattr(assignor, "name", ""):
        raise ConfigError(
            f"partition.assignment.strategy={given!r}: an assignor has a name and assign()"
        )
    return assignor
