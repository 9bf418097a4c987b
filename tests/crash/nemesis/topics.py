"""The topics of a run, and the rules that differ between them."""

from __future__ import annotations

PLAIN = "plain"
"""Only written and read."""
TRIMMED = "trimmed"
"""DeleteRecords moves its start."""
COMPACTED = "compacted"
"""Only the last record of each key has to stay."""
ANEW = "anew"
"""Deleted and made anew again and again."""
COPIED = "copied"
"""Written in transactions."""

PARTITIONS = {PLAIN: 3, TRIMMED: 2, COMPACTED: 2, ANEW: 2, COPIED: 2}
SETTINGS = {
    PLAIN: {},
    TRIMMED: {"segment.ms": "2000"},
    COMPACTED: {
        "cleanup.policy": "compact",
        "segment.ms": "1000",
        "min.cleanable.dirty.ratio": "0.01",
    },
    ANEW: {},
    COPIED: {},
}
CLUSTER = {
    "auto.create.topics.enable": "false",
    "min.insync.replicas": "2",
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "1000",
    "replica.lag.time.max.ms": "2000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "log.cleaner.backoff.ms": "200",
    "group.initial.rebalance.delay.ms": "100",
}
