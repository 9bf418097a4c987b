"""Validation of topic names.

The messages are Kafka's, word for word.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.topic_names import METADATA_TOPIC, problem_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def validate_name(name: str) -> None:
    """Raise InvalidTopic if `name` is invalid."""
    problem = problem_of(name)
    if problem is not None:
        raise errors.InvalidTopic(f"Topic name is invalid: {problem}")


def is_valid_name(name: str) -> bool:
    """Return True if a topic can have this name."""
    return problem_of(name) is None


def refuse_metadata_topic(name: str) -> None:
    """Raise InvalidRequest for the metadata log's topic."""
    if name == METADATA_TOPIC:
        raise errors.InvalidRequest(f"Creation of internal topic {METADATA_TOPIC} is prohibited.")


class Collisions:
    """Finds names that differ from existing ones only in '.' and '_'.

    Kafka's metric names replace dots by underscores, which would make both names equal. The
    existing names are read once, when the first name with '.' or '_' is checked.
    """

    def __init__(self, existing: Iterable[str]) -> None:
        self._existing = existing
        self._by_metric_name: dict[str, str] | None = None

    def refuse(self, name: str) -> None:
        """Raise InvalidTopic if the new name `name` collides with an existing one."""
        if "." not in name and "_" not in name:
            return
        if self._by_metric_name is None:
            # If existing names collide, the error names the first of them, so store it last.
            names = reversed(list(self._existing))
            self._by_metric_name = {each.replace(".", "_"): each for each in names}
        other = self._by_metric_name.get(name.replace(".", "_"))
        if other is not None:
            raise errors.InvalidTopic(f"Topic '{name}' collides with existing topic: {other}")
