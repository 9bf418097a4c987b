"""Rules for topic names, and the names of internal topics. Error texts are Kafka's own."""

from __future__ import annotations

OFFSETS_TOPIC = "__consumer_offsets"
"""The topic with the consumer groups and their committed offsets."""

TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"

METADATA_TOPIC = "__cluster_metadata"
"""The controller's log; clients do not see it as a topic."""

INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC))
"""Topics of the coordinators; Metadata marks them as internal."""

LENGTH_MAX = 249
"""Maximum length of a name. A log directory is called topic-partition, and file systems allow 255
bytes."""

_ALLOWED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def problem_of(name: str) -> str | None:
    """Return why `name` is no valid topic name; None if it is valid."""
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
