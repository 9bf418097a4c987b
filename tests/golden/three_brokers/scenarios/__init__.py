"""The scenarios, by subject. Importing this package registers them all."""

from tests.golden.three_brokers.scenarios import (
    broker_resources,
    coordinators,
    creating,
    directories,
    elections,
    failures,
    follower_reads,
    lagging,
    reassignments,
    registrations,
    share_coordinators,
    share_groups,
    share_leaders,
    streams_groups,
    waiting,
    wrong_broker,
)

__all__ = [
    "broker_resources",
    "coordinators",
    "creating",
    "directories",
    "elections",
    "failures",
    "follower_reads",
    "lagging",
    "reassignments",
    "registrations",
    "share_coordinators",
    "share_leaders",
    "share_groups",
    "streams_groups",
    "waiting",
    "wrong_broker",
]
