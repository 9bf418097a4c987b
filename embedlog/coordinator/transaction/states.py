"""The states of a transactional id, as Kafka numbers them in `__transaction_state`.

                      +---------------- add partitions ----------------+
                      v                                                |
    EMPTY -> ONGOING -+-> PREPARE_COMMIT -> COMPLETE_COMMIT -----------+
      ^               +-> PREPARE_ABORT --> COMPLETE_ABORT ------------+
      +----------------------- InitProducerId ------------------------ +

PREPARE is the decision: only its COMPLETE can follow, also after a crash. With transactions of
version 2 an abort is allowed without an open transaction: it only raises the epoch.
"""

from __future__ import annotations

EMPTY = 0
ONGOING = 1
PREPARE_COMMIT = 2
PREPARE_ABORT = 3
COMPLETE_COMMIT = 4
COMPLETE_ABORT = 5
DEAD = 6
"""A deleted id: its record is a tombstone."""
PREPARE_EPOCH_FENCE = 7
"""Kafka's state between a fence and PREPARE_ABORT. Here both are one step, so no id is ever in this
state, but ListTransactions may ask for it."""

NAMES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""The states as DescribeTransactions and ListTransactions spell them."""

_IDLE = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})

ENTERED_FROM: dict[int, frozenset[int]] = {
    EMPTY: _IDLE,
    ONGOING: _IDLE | {ONGOING},
    PREPARE_COMMIT: frozenset({ONGOING}),
    PREPARE_ABORT: _IDLE | {ONGOING, PREPARE_EPOCH_FENCE},
    COMPLETE_COMMIT: frozenset({PREPARE_COMMIT}),
    COMPLETE_ABORT: frozenset({PREPARE_ABORT}),
    DEAD: _IDLE,
    PREPARE_EPOCH_FENCE: frozenset({ONGOING}),
}
"""State -> the states from which it may be entered."""
