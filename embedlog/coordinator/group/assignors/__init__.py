"""Server-side assignors (KIP-848): which member gets which partitions. Pure functions.

    assign(members, partition_counts) -> {member id: {topic id: partitions}}

`members` maps member ids to `MemberSpec`, `partition_counts` topic ids to numbers of partitions;
the order of both is the order in which partitions are dealt. Every member has an entry in the
answer, and every partition of a subscribed topic has exactly one owner. Topics that are not in
`partition_counts` do not exist, and are left out.
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
    """The assignors that `group.consumer.assignors` lists, by name or Kafka's class, in order.

    Raises:
        ConfigError: one of them is not known here, or there is none.
    """
    found = tuple(_CLASSES.get(name, name) for name in names)
    for name in found:
        if name not in NAMES:
            raise ConfigError(f"group.consumer.assignors: {name!r}; known are {', '.join(NAMES)}")
    if not found:
        raise ConfigError("group.consumer.assignors: at least one assignor is needed")
    return found


def assignor(name: str) -> Assignor:
    """The function of that name. Requires: `name` in `NAMES`."""
    if name == "range":
        from embedlog.coordinator.group.assignors import range as range_assignor

        return range_assignor.assign
    assert name == "uniform", name
    from embedlog.coordinator.group.assignors import uniform

    return uniform.assign
