"""Classic groups: members elect a leader, and the leader assigns the partitions.

    JoinGroup    parked until all members have joined           `join`
    SyncGroup    parked until the leader's assignment comes     `sync`
    Heartbeat    answered at once, restarts the session         `heartbeat`
    LeaveGroup   answered at once                               `leave`
    expiry       removes a member whose session has timed out   `rebalances`, by the timer
                                                                `group_operation.DelayedHeartbeat`
    rebalance    from one generation of the group to the next   `rebalances`

`classic_group` has the state and its table, `members` the members, `parked_requests` answers parked
requests, `classic_groups` is the entry point. State changes under the shard's lock; answers are
sent, and purgatories touched, after its release.
"""
