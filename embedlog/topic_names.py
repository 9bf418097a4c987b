"""Which names a topic may have, and which are Kafka's own. The texts are Kafka's, word for word."""

from __future__ import annotations

OFFSETS_TOPIC = "__consumer_offsets"
"""Groups, and how far they have read."""

TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"

METADATA_TOPIC = "__cluster_metadata"
"""The controller's log; no client sees it as a topic."""

INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC))
"""Topics of the coordinators; Metadata marks them."""

LENGTH_MAX = 249
"""A directory is named topic-partition, and file systems stop at 255 bytes."""

_ALLOWED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def problem_of(name: str) -> str | None:
    """Why no topic can have this name; None if one can."""
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
