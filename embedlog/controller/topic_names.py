"""Refusing names that a topic may not have, and two that may not stand side by side.

The messages are Kafka's, word for word.
"""

from __future__ import annotations

from embedlog.errors import error_for
from embedlog.topic_names import problem_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

METADATA_TOPIC = "__cluster_metadata"
_INVALID_TOPIC = 17
_INVALID_REQUEST = 42


def validate_name(name: str) -> None:
    """Raise InvalidTopic when no topic can have this name."""
    problem = problem_of(name)
    if problem is not None:
        raise error_for(_INVALID_TOPIC, f"Topic name is invalid: {problem}")


def is_valid_name(name: str) -> bool:
    """Can a topic have this name?"""
    return problem_of(name) is None


def refuse_metadata_topic(name: str) -> None:
    """Raise InvalidRequest for the metadata log's own topic."""
    if name == METADATA_TOPIC:
        raise error_for(
            _INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        )


def refuse_collision(name: str, existing: Iterable[str]) -> None:
    """Raise InvalidTopic when an existing name differs only in '.' and '_'.

    Kafka's metric names turn dots into underscores, where the two would be one.
    """
    if "." not in name and "_" not in name:
        return
    normal = name.replace(".", "_")
    for other in existing:
        if other != name and other.replace(".", "_") == normal:
            raise error_for(_INVALID_TOPIC, f"Topic '{name}' collides with existing topic: {other}")
