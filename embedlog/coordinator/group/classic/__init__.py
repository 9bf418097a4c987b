"""Classic groups: members meet, elect a leader, and the leader assigns the work.

    JoinGroup   parked until everyone is there      join, DelayedJoin
    SyncGroup   parked until the leader assigned    sync, DelayedSync
    Heartbeat   answered at once                    heartbeat, DelayedHeartbeat
    LeaveGroup  answered at once                    leave

`classic_group` holds the state and its table, `rebalances` moves a group from one state to the
next, `parked_requests` answers who waits, `classic_groups` is the way in. State changes under the
shard's lock; whoever is parked is answered, and purgatories are touched, after its release.
"""
