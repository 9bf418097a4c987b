"""`Shape`: what a test asks of its cluster, by a marker or by arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from embedlog.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The shape of a cluster for tests.

    >>> Shape.of(brokers=3, topics={"orders": 6}).brokers
    3
    """

    brokers: int = 1
    """The number of brokers."""
    racks: Sequence[str] = ()
    """The rack of each broker."""
    topics: Mapping[str, int | Mapping[str, Any]] = field(default_factory=dict)
    """Topics to create: name -> number of partitions, or the arguments of `create_topic`."""
    config: Mapping[str, object] = field(default_factory=dict)
    """Settings of the brokers, with Kafka's names."""
    clock: str = "real"
    """"real", "manual" or "auto": see `Kafka.clock`."""
    path: str | None = None
    """The data directory; None keeps everything in memory."""
    cluster_id: str | None = None
    """The cluster's id, 22 characters; None draws one."""

    @classmethod
    def of(cls, **given: Any) -> Shape:
        """Return a shape from a user's arguments.

        Raises:
            ConfigError: an argument is unknown or has a value that it cannot have.
        """
        known = [each.name for each in fields(cls)]
        for name, value in given.items():
            if name not in known:
                from embedlog.testing.names import nearest

                hint = nearest(name, known)
                raise ConfigError(f"{name}={value!r}: a cluster has no such property; {hint}")
        made = cls(**given)
        if made.clock not in _CLOCKS:
            raise ConfigError(f"clock={made.clock!r}: expected one of {', '.join(_CLOCKS)}")
        return made


_CLOCKS = ("real", "manual", "auto")
