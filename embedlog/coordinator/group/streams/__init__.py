"""Streams groups (KIP-1071): the coordinator assigns the tasks of a Kafka Streams application.

    streams_groups       the entry point, with one method for each request
    streams_heartbeats   joining, staying, leaving: StreamsGroupHeartbeat
    request_checks       validation of a heartbeat
    update               the records that a heartbeat makes for member and group
    target_assignment    the next target assignment
    sticky_assignor      its assignor: a pure function
    processes            the tasks of members and of their processes, while tasks are assigned
    reconciliation       one step of a member from its tasks towards its target
    membership           members: looking them up, replacing and removing them
    member_timers        the time limits of members
    initial_delay        the pause before the first assignment of an empty group
    streams_group        one group: epochs, topology, members, target assignment
    facts                the record of a group, and the offsets that members report
    commit_check         the commit of a member that names an earlier epoch
    member               one member
    tasks                sets of tasks
    task_holders         the processes that have each task
    topology             the subtopologies and topics that the application names
    configured_topology  the same with partition counts: the tasks, and the missing topics
    partition_counts     partition counts of repartition topics
    endpoints            the partitions behind the endpoints of members
    descriptions         the plugin for descriptions of topologies (KIP-1331)
    stored_descriptions  which topology of a group has a stored description
    creation_errors      errors of the creation of internal topics
    status               status codes of the answers
    member_records       members, assignments and the topology as records
    topology_records     the topology as a record, and back
    replay               applies the records to the groups
    description          StreamsGroupDescribe

A task is a subtopology and a partition number. As in consumer groups, only replay changes the state
of a group, except for the state that is not stored.
"""
