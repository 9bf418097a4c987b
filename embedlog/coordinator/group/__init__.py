"""The group coordinator: groups of both protocols, and the offsets they commit.

`group_coordinator` is the way in, one method per API; `group_shard` holds what one partition of
`__consumer_offsets` says.
"""
