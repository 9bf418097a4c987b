"""Coordinators: state that lives in memory and survives as records of an internal topic.

    operation -> (records, response): append, replay, answer when committed

`runtime` is that sentence; `shard_context` is what a shard's parts may use of the world; `group/`
is the coordinator of groups and their offsets. Nothing here is imported before it is needed.
"""
