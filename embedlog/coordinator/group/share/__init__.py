"""Share groups (KIP-932): members share partitions, and the coordinator assigns them.

    share_groups         the entry point, with one method for each request
    share_heartbeats     joining, staying, leaving: ShareGroupHeartbeat
    request_checks       validation of a heartbeat
    update               the records that a heartbeat makes for member and group
    target_assignment    the next target assignment, made by the assignor
    initialization       the first state of share partitions, at the share coordinator
    offsets              AlterShareGroupOffsets, DeleteShareGroupOffsets
    described_offsets    DescribeShareGroupOffsets, which needs no shard
    deletion             DeleteGroups: the state first, then the group
    membership           members: looking them up, removing them, the end of their sessions
    share_group          one group: epochs, members, target assignment, share partitions
    member               one member
    state_topics         the share partitions of a group, and how far their state is
    member_records       members, assignments and share partitions as records, and back
    replay               applies the records to the groups
    description          ShareGroupDescribe

As in consumer groups, only replay changes the state of a group. A change of the share coordinator's
state takes two writes. The first one notes the change. Then, without the shard's lock, a request
goes to the share coordinator. The second write notes the answer.
"""
