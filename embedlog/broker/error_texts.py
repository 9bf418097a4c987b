"""Kafka's default messages of the error codes that some answer shows with a message.

Programs print the messages, and tests compare them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.errors import KafkaError

DEFAULT_TEXTS = {
    3: "This server does not host this topic-partition.",
    15: "The coordinator is not available.",
    42: (
        "This most likely occurs because of a request being malformed by the client library or"
        " the message was sent to an incompatible broker. See the broker logs for more details."
    ),
    73: "Topic deletion is disabled.",
    80: "The preferred leader was not available.",
    83: "Eligible topic partition leaders are not available.",
    84: "Leader election not needed for topic partition.",
    100: "This server does not host this topic ID.",
}

_GROUP_TEXTS = {
    14: "The coordinator is loading and hence can't process requests.",
    15: DEFAULT_TEXTS[15],
    16: "This is not the correct coordinator.",
    24: "The group id is invalid.",
    35: "The version of API is not supported.",
    68: "The group is not empty.",
}
"""Only the administration of share groups shows these, and shows them always."""


def message_for_admin(error: KafkaError) -> str | None:
    """Return the message of an error in the administration of share groups."""
    return error.message if error.message is not None else _GROUP_TEXTS.get(error.code)


def message_of(error: KafkaError) -> str | None:
    """Return the message of an error, or Kafka's default for its code."""
    return error.message if error.message is not None else DEFAULT_TEXTS.get(error.code)
