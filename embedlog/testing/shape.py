"""`Shape`: what a test asks of its cluster, by a marker or by arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from embedlog.config.broker_config import normalise_names
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
    instant: bool = True
    """Whether the defaults are those of `embedlog.open`, which end waits in tests, or Kafka's."""
    clock: str = "real"
    """"real", "manual" or "auto": see `Kafka.clock`."""
    timeline: bool = False
    """Whether to record everything that happens from the beginning: see `Kafka.record`."""
    persona: str | None = None
    """The broker to look like, for example "kafka-3.9" or "redpanda-24.3": see `personas`."""
    max_versions: Mapping[str, int] = field(default_factory=dict)
    """API -> the highest version to serve. It narrows the persona, or all served versions."""
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
                from embedlog.testing.names import hint

                near = hint(name, known)
                raise ConfigError(f"{name}={value!r}: a cluster has no such property; {near}")
        made = cls(**given)
        if made.clock not in _CLOCKS:
            raise ConfigError(f"clock={made.clock!r}: expected one of {', '.join(_CLOCKS)}")
        made.settings()
        return made

    def settings(self) -> dict[str, Any]:
        """Return the settings of the brokers: the persona's, then the test's own.

        Raises:
            ConfigError: the persona, or an API or a version of `max_versions`, does not exist.
        """
        own = normalise_names(dict(self.config))
        if self.persona is None and not self.max_versions:
            return own
        from embedlog.testing import personas

        return {**personas.settings(self.persona, self.max_versions), **own}


_CLOCKS = ("real", "manual", "auto")
