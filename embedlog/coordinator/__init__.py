"""Coordinators: state that lives in memory and survives as records of an internal topic.

    operation -> (records, response): append, replay, answer when committed

`runtime` runs such operations, `shard_context` provides time, timers and settings to a
shard. `group/` coordinates groups and their offsets, `share/` keeps the states of share partitions,
`transaction/` coordinates transactional ids. Nothing here is imported before a request needs it.
"""
