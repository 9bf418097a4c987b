"""`AcknowledgeType`: what a share consumer says about a delivered record."""

from __future__ import annotations

GAP = 0
"""The client's own answer for an acquired offset that has no record."""


class AcknowledgeType:
    """What a share consumer says about a delivered record.

    >>> embedlog.AcknowledgeType.ACCEPT
    1
    """

    ACCEPT = 1
    """The record was processed: it is not delivered again."""
    RELEASE = 2
    """The record was not processed: it may be delivered again, also to another member."""
    REJECT = 3
    """The record cannot be processed: it is not delivered again."""
    RENEW = 4
    """Processing takes longer: the time until the record is delivered to others starts anew."""


ALL_TYPES = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.REJECT,
    AcknowledgeType.RENEW,
)
