"""The features of the cluster: what is supported, and the level in force (KIP-584)."""

from __future__ import annotations

TRANSACTION_VERSION = 2
"""Every end of a transaction gives its producer a new epoch (KIP-890)."""

FEATURES = (
    ("group.version", 0, 1, 1),
    ("kraft.version", 0, 1, None),
    ("metadata.version", 7, 33, 33),
    ("share.version", 0, 2, 2),
    ("streams.version", 0, 1, 1),
    ("transaction.version", 0, 2, TRANSACTION_VERSION),
    ("eligible.leader.replicas.version", 0, 1, 1),
)
"""Name, lowest and highest supported level, the level in force (None: not a finalized one)."""
