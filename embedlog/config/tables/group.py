"""Settings of a group; `broker_coordinators` has the broker settings that give their defaults."""

TABLE = """
consumer.assignment.interval.ms int 1000 >=0 cluster-wide
    Shortest time between two assignments of a consumer group.
consumer.assignor.offload.enable boolean true - internal
    Compute assignments of consumer groups apart from the requests. Without effect here: an assignor
    runs in the thread of its request.
consumer.heartbeat.interval.ms int 5000 >=1 cluster-wide
    Time between heartbeats of members of the consumer group.
consumer.session.timeout.ms int 45000 >=1 cluster-wide
    Silence after which a member of the consumer group is removed.
embedlog.share.key.order boolean false - internal
    Deliver the records of one key one after another, in the order of the log.
    `embedlog.sharing.key_order` does it.
errors.deadletterqueue.copy.record.enable boolean false - cluster-wide
    Copy the record itself, not only its position, into the dead letter topic.
errors.deadletterqueue.topic.name string "" - cluster-wide
    Topic for records the share group gave up on; empty means none.
share.assignment.interval.ms int 1000 >=0 cluster-wide
    Shortest time between two assignments of a share group.
share.assignor.offload.enable boolean true - internal
    Compute assignments of share groups apart from the requests. Without effect here: an assignor
    runs in the thread of its request.
share.auto.offset.reset string latest offset-reset cluster-wide
    Where a share group begins in a new partition: latest, earliest, or by_duration.
share.delivery.count.limit int 5 >=2 cluster-wide
    How often a record is handed out before the share group gives up on it.
share.heartbeat.interval.ms int 5000 >=1 cluster-wide
    Time between heartbeats of members of the share group.
share.isolation.level string read_uncommitted one-of:read_committed,read_uncommitted cluster-wide
    Whether the share group reads records of open and aborted transactions.
share.partition.max.record.locks int 2000 >=100 cluster-wide
    Records of one partition that may be handed out at the same time.
share.record.lock.duration.ms int 30000 >=1000 cluster-wide
    How long a member may keep a record before another member gets it.
share.renew.acknowledge.enable boolean true - cluster-wide
    Allow members to prolong their hold on a record.
share.session.timeout.ms int 45000 >=1 cluster-wide
    Silence after which a member of the share group is removed.
streams.acceptable.recovery.lag long 10000 >=0 internal
    Number of offsets by which a streams task may lag and still count as caught up.
streams.assignment.interval.ms int 1000 >=0 cluster-wide
    Shortest time between two assignments of a streams group.
streams.assignor.name string null - cluster-wide
    How tasks are spread over the members of the streams group.
streams.assignor.offload.enable boolean true - internal
    Compute assignments of streams groups apart from the requests. Without effect here: an assignor
    runs in the thread of its request.
streams.heartbeat.interval.ms int 5000 >=1 cluster-wide
    Time between heartbeats of members of the streams group.
streams.initial.rebalance.delay.ms int 3000 >=0 cluster-wide
    How long a new streams group waits for more members before the first assignment.
streams.num.standby.replicas int 0 >=0 cluster-wide
    Standby copies of each stateful task.
streams.num.warmup.replicas int 2 >=0 internal
    Extra copies of tasks that may be warmed up at the same time.
streams.rack.aware.assignment.tags list "" - cluster-wide
    Client tags by which standby copies are kept apart.
streams.session.timeout.ms int 45000 >=1 cluster-wide
    Silence after which a member of the streams group is removed.
streams.task.offset.interval.ms int 60000 >=1 internal
    Time between reports of task offsets by members of the streams group.
"""
