"""Server-side assignors (KIP-848): pure functions that give members their partitions.

    assign(members, partition_counts) -> {member id: {topic id: partitions}}

`members` maps member ids to `MemberSpec`, `partition_counts` topic ids to numbers of partitions.
Assignors deal the partitions in the order of these two mappings. The result has an entry for every
member, and exactly one owner for every partition of a subscribed topic. A topic that is missing in
`partition_counts` does not exist and is left out.
"""

from __future__ import annotations

from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from embedlog.coordinator.group.assignors.spec import MemberSpec, Partitions

    Assignor = Callable[[Mapping[str, MemberSpec], Mapping[bytes, int]], dict[str, Partitions]]

NAMES = ("uniform", "range")

_PACKAGE = "org.apache.kafka.coordinator.group.assignor."
_CLASSES = {f"{_PACKAGE}UniformAssignor": "uniform", f"{_PACKAGE}RangeAssignor": "range"}


def configured(names: Sequence[str]) -> tuple[str, ...]:
    """Return the assignors' names, in order; group.consumer.assignors may name Kafka's classes.

    Raises:
        ConfigError: an assignor is unknown, or `names` is empty.
    """
    found = tuple(_CLASSES.get(name, name) for name in names)
    for name in found:
        if name not in NAMES:
            raise ConfigError(f"group.consumer.assignors: {name!r}; known are {', '.join(NAMES)}")
    if not found:
        raise ConfigError("group.consumer.assignors: at least one assignor is needed")
    return found


def assignor(name: str) -> Assignor:
    """Return the assignor's function. Requires: `name` in `NAMES`."""
    if name == "range":
        from embedlog.coordinator.group.assignors import range as range_assignor

        return range_assignor.assign
    assert name == "uniform", name
    from embedlog.coordinator.group.assignors import uniform

    return uniform.assign
