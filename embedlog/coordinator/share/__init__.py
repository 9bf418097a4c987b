"""The share coordinator (KIP-932): delivery states of share partitions, in `__share_group_state`.

    request -> share_coordinator -> operations on a share_shard -> snapshot or update records
                                                     pruning    -> records that no load needs go

A *place* is a partition of a topic, by the topic's id. A group's delivery state at a place is found
by the key "group:topic id:partition", whose hash chooses the shard. `state_client` is the way of
other parts of a broker to the coordinators.
"""
