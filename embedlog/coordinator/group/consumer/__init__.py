"""Groups of the consumer protocol (KIP-848): the coordinator assigns, members follow.

    consumer_groups   the way in, one method for each request
    heartbeats        joining, staying, leaving: ConsumerGroupHeartbeat
    request_checks    what a heartbeat must look like
    update            what a heartbeat or a join comes to: records for the member and its group
    reconciliation    one step of a member from what it has to what it shall have
    target            the next target assignment, made by an assignor
    membership        members: looking them up, static ones, removing them
    member_timers     by when members must have been heard
    consumer_group    one group: three epochs, members, target assignment
    holders           which member holds each partition
    assignor_votes    which assignor the members ask for
    member            one member, and its states
    subscriptions     what members read; the hash of its metadata
    regexes           patterns, and regex_matching: when they are matched, and what follows
    member_records    members and assignments as records, and back; replay applies them
    classic_members   members that speak the classic protocol, inside a consumer group
    protocol_bytes    their subscriptions and assignments
    migration         from a classic group to a consumer group, and back
    description       ConsumerGroupDescribe

State changes by replay alone: an operation computes records from the state as it is, and the
records change it once they are appended. So an append that fails leaves nothing behind but timers,
and those look at the group again before they act.
"""
