"""Which names a topic may have, and which two may not stand side by side.

The messages are Kafka's, word for word.
"""

from __future__ import annotations

from embedlog.errors import error_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LENGTH_MAX = 249
"""A directory is named topic-partition, and file systems stop at 255 bytes."""

METADATA_TOPIC = "__cluster_metadata"
_ALLOWED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_INVALID_TOPIC = 17
_INVALID_REQUEST = 42


def validate_name(name: str) -> None:
    """Raise InvalidTopic when no topic can have this name."""
    problem = _problem(name)
    if problem is not None:
        raise error_for(_INVALID_TOPIC, f"Topic name is invalid: {problem}")


def is_valid_name(name: str) -> bool:
    """Can a topic have this name?"""
    return _problem(name) is None


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


def _problem(name: str) -> str | None:
    if name == "":
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {LENGTH_MAX}"
    if not _ALLOWED.issuperset(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics,"
            " '.', '_' and '-'"
        )
    return None
