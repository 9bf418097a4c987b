"""The group coordinator: groups of both protocols, and the offsets that they commit.

`group_coordinator` finds the shard of a group; `group_shard` is the state of one partition of
`__consumer_offsets`.
"""
