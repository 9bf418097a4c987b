"""Groups of the consumer protocol (KIP-848): the coordinator assigns, members follow.

    consumer_groups      the entry point, with one method for each request
    consumer_heartbeats  joining, staying, leaving: ConsumerGroupHeartbeat
    request_checks       validation of a heartbeat
    update               the records that a heartbeat or a join makes for member and group
    reconciliation       one step of a member from its assignment towards its target
    target_assignment    the next target assignment, made by an assignor
    membership           members: looking them up, static ones, removing them
    member_timers        time limits of members: expiry of sessions, of rebalances, of joins
    consumer_group       one group: three epochs, members, target assignment
    holders              the member that holds each partition
    member               one member, and its states
    subscriptions        the members' topics and preferred assignors
    regexes              patterns of topic names: checking and matching them
    regex_matching       when a group's patterns are matched, and the effect
    member_records       members and assignments as records, and back
    replay               applies the records to the groups
    classic_members      members of the classic protocol in a consumer group
    protocol_bytes       subscriptions and assignments of classic members, in bytes
    migration            from a classic group to a consumer group, and back
    description          ConsumerGroupDescribe

Only replay changes the state of a group. An operation computes records from the present state, and
replay applies the records once they are appended. So a failed append leaves nothing behind but
timers, which check the group again before they act.
"""
