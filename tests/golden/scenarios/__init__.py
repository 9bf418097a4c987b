"""The scenarios, by API. Importing this package registers them all."""

from tests.golden.scenarios import (
    cluster,
    configs,
    consumer_groups,
    fetching,
    group_admin,
    group_joining,
    group_offsets,
    group_states,
    group_static,
    group_timeouts,
    group_versions,
    malformed,
    offsets,
    producing,
    sessions,
    topics,
)

__all__ = [
    "cluster",
    "configs",
    "consumer_groups",
    "fetching",
    "group_admin",
    "group_offsets",
    "group_joining",
    "group_states",
    "group_static",
    "group_timeouts",
    "group_versions",
    "malformed",
    "offsets",
    "producing",
    "sessions",
    "topics",
]
