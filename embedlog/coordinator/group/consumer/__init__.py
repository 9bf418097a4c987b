"""Groups of the consumer protocol (KIP-848): the coordinator assigns, members follow.

    consumer_groups   the way in: heartbeats, joins, leaves, sessions that end
    consumer_group    one group: three epochs, members, target assignment, who holds which partition
    member            one member, and its states
    reconciliation    one step of a member from what it has to what it shall have
    target            the next target assignment, made by an assignor
    subscriptions     what members read; the hash of its metadata
    regexes           subscriptions by pattern, and when they are matched again
    request_checks    what a heartbeat must look like
    member_records    members and assignments as records, and back; replay applies them
    classic_members   members that speak the classic protocol, inside a consumer group
    migration         from a classic group to a consumer group, and back
    description       ConsumerGroupDescribe

State changes by replay alone: an operation computes records from the state as it is, and the
records change it once they are appended. So an append that fails leaves nothing behind but timers,
and those look at the group again before they act.
"""
