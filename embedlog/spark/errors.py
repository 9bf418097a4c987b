"""Wrong options and data that is gone, in the words of Spark's Kafka connector."""

from __future__ import annotations

from embedlog.errors import EmbedlogError


class IllegalArgument(EmbedlogError, ValueError):
    """An option is missing, unknown in its value, or contradicts another."""


class DataLoss(EmbedlogError):
    """Records that were to be read are not there any more, and failOnDataLoss is true."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            "Some data may have been lost because they are not available in Kafka any more; "
            "either the\ndata was aged out by Kafka or the topic may have been deleted before all "
            "the data in the\ntopic was processed. If you don't want your streaming query to fail "
            f"on such cases, set the\nsource option failOnDataLoss to false.\nReason: {reason}"
        )
        self.reason = reason
