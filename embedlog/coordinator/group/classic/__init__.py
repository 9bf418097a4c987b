"""Classic groups: members elect a leader, and the leader assigns the partitions.

    JoinGroup   parked until all members have joined        join
    SyncGroup   parked until the leader's assignment comes  sync
    Heartbeat   answered at once                            heartbeat, group_operation
    LeaveGroup  answered at once                            leave

`classic_group` has the state and its table, `rebalances` moves a group from one state to the next,
`parked_requests` answers parked requests, `classic_groups` is the entry point. State changes under
the shard's lock; answers are sent, and purgatories touched, after its release.
"""
