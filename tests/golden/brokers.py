"""The brokers for scenarios: Kafka and embedlog with the same settings.

Each entry has the settings of real Kafka for some recordings. All but `PLAIN` are for groups: there
embedlog runs without sockets and under a simulated clock, so that time-outs cost no time.
"""

from __future__ import annotations

PLAIN = "plain"


_STREAMS_AT_ONCE = {
    # As `_AT_ONCE`, for streams groups.
    "group.streams.assignment.interval.ms": "0",
    "group.streams.assignor.offload.enable": "false",
    "group.streams.initial.rebalance.delay.ms": "0",
}

_SHARED_AT_ONCE = {
    # As `_AT_ONCE`, for share groups.
    "group.share.assignment.interval.ms": "0",
    "group.share.assignor.offload.enable": "false",
}

_AT_ONCE = {
    # Since KIP-1263 a broker may compute an assignment after the heartbeat that needs it, whose
    # answer then may or may not hold it. These settings compute it inside the heartbeat.
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
}

_SHARE_STATE = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
}

PLUGIN = "group.streams.topology.description.plugin.class"

BROKERS: dict[str, dict[str, str]] = {
    PLAIN: {},
    "groups": _AT_ONCE,
    "impatient": {
        **_AT_ONCE,
        "group.min.session.timeout.ms": "100",
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": "3000",
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.heartbeat.interval.ms": "500",
    },
    "forgetful": {**_AT_ONCE, "offsets.retention.check.interval.ms": "500"},
    "small groups": {**_AT_ONCE, "group.max.size": "2", "group.consumer.max.size": "2"},
    "slow start": {**_AT_ONCE, "group.initial.rebalance.delay.ms": "1500"},
    "no migration": {**_AT_ONCE, "group.consumer.migration.policy": "disabled"},
    "upgrade only": {**_AT_ONCE, "group.consumer.migration.policy": "upgrade"},
    "downgrade only": {**_AT_ONCE, "group.consumer.migration.policy": "downgrade"},
    "share groups": {**_AT_ONCE, **_SHARED_AT_ONCE},
    "small share groups": {**_AT_ONCE, **_SHARED_AT_ONCE, "group.share.max.size": "2"},
    "impatient share groups": {
        **_AT_ONCE,
        **_SHARED_AT_ONCE,
        "group.share.min.session.timeout.ms": "1000",
        "group.share.session.timeout.ms": "3000",
        "group.share.min.heartbeat.interval.ms": "100",
        "group.share.heartbeat.interval.ms": "500",
    },
    "share groups as shipped": {"group.share.assignor.offload.enable": "false"},
    "streams groups": {**_AT_ONCE, **_STREAMS_AT_ONCE},
    "small streams groups": {**_AT_ONCE, **_STREAMS_AT_ONCE, "group.streams.max.size": "2"},
    "impatient streams groups": {
        **_AT_ONCE,
        **_STREAMS_AT_ONCE,
        "group.streams.min.session.timeout.ms": "1000",
        "group.streams.session.timeout.ms": "3000",
        "group.streams.min.heartbeat.interval.ms": "100",
        "group.streams.heartbeat.interval.ms": "500",
    },
    "described streams groups": {
        **_AT_ONCE,
        **_STREAMS_AT_ONCE,
        PLUGIN: "tests.golden.shelf.Shelf",  # the class of a Python and of a Java file
    },
    "streams groups as shipped": {"group.streams.assignor.offload.enable": "false"},
    "one assignor": {**_AT_ONCE, "group.consumer.assignors": "range"},
    "range first": {
        **_AT_ONCE,
        "group.consumer.assignors": "range,uniform",
        "group.consumer.max.size": "2",
        "group.max.size": "3",
    },
    "classic only": {"group.coordinator.rebalance.protocols": "classic"},
    "transactions": {
        **_AT_ONCE,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    },
    "features": _AT_ONCE,
    "unstable versions": {**_AT_ONCE, "unstable.api.versions.enable": "true"},
    "two phases": {
        **_AT_ONCE,
        "unstable.api.versions.enable": "true",
        "transaction.two.phase.commit.enable": "true",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    },
    "share state": _SHARE_STATE,
    "share features": _SHARE_STATE,
    "share state on time": {
        **_SHARE_STATE,
        "share.coordinator.cold.partition.snapshot.interval.ms": "3000",
        "share.coordinator.state.topic.prune.interval.ms": "1000",
    },
    "sharing": {
        **_AT_ONCE,
        "group.share.min.record.lock.duration.ms": "1000",
        "errors.deadletterqueue.auto.create.topics.enable": "true",
        "share.coordinator.state.topic.num.partitions": "2",
    },
    "few share sessions": {
        **_AT_ONCE,
        "group.share.max.size": "2",
        "group.share.max.share.sessions": "2",
    },
    "as shipped": {},
    "untouched": {},
}
"""Name -> settings that differ from Kafka's defaults (and from the initial rebalance
delay of 0).
"""
