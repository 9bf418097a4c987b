"""Creating the internal topics of streams applications, and the errors of that (KIP-1071).

The broker that gets a heartbeat creates the topics that the group lacks. An error is kept for two
heartbeat intervals: so long the topic is not tried again, and the status of the answers names it.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.controller.controller import NewTopic
from embedlog.errors import KafkaError
from embedlog.logger import Logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from embedlog.broker.broker import Broker
    from embedlog.coordinator.group.streams.topology import InternalTopic
    from embedlog.runtime.clock import Clock

_ERRORS_MAX = 1000
_SHOWN_MAX = 3
_BROKER_DEFAULT = -1

_log = Logger("broker")


class StreamsTopics:
    """The errors of one broker's attempts. Any thread may call the methods."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed: dict[str, tuple[str, int]] = {}
        """Topic -> (error text, monotonic time until which it is kept)."""

    def create(self, broker: Broker, topics: Sequence[InternalTopic], *, keep_ms: int) -> None:
        """Create topics, except those whose last error is still kept. Requires: no lock."""
        wanted = [topic for topic in topics if self._error(topic.name) is None]
        if not wanted:
            return
        try:
            if not broker.reaches_controller():
                raise errors.RequestTimedOut()
            made = broker.controller.create_topics([_new_topic(topic) for topic in wanted])
        except KafkaError as error:
            made = {topic.name: error for topic in wanted}
        for name, result in made.items():
            if isinstance(result, KafkaError) and not isinstance(result, errors.TopicAlreadyExists):
                self._keep(name, result, keep_ms)

    def problems(self, names: Iterable[str]) -> str:
        """Return the kept errors of these topics as one text; empty if there are none."""
        found = [(name, error) for name in names if (error := self._error(name)) is not None]
        text = ", ".join(f"{name} ({error})" for name, error in found[:_SHOWN_MAX])
        rest = len(found) - _SHOWN_MAX
        return f"{text} and {rest} more" if rest > 0 else text

    def _error(self, name: str) -> str | None:
        kept = self._failed.get(name)
        if kept is None:
            return None
        if self._clock.monotonic_ms() >= kept[1]:
            self._failed.pop(name, None)
            return None
        return kept[0]

    def _keep(self, name: str, error: KafkaError, keep_ms: int) -> None:
        _log.warning("internal topic %s cannot be created: %s", name, error)
        while len(self._failed) >= _ERRORS_MAX:
            # The eldest one goes; another thread may have taken it out already.
            self._failed.pop(next(iter(self._failed)), None)
        self._failed[name] = str(error), self._clock.monotonic_ms() + keep_ms


def _new_topic(topic: InternalTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        partition_count=topic.partition_count,
        replication_factor=topic.replication_factor or _BROKER_DEFAULT,
        configs=dict(topic.configs),
    )
