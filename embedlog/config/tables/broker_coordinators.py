"""Broker settings of groups, transactions and their internal topics."""

TABLE = """
add.partitions.to.txn.retry.backoff.max.ms int 100 >=0 read-only
    How long a Produce request waits for the end of its producer's previous transaction.
add.partitions.to.txn.retry.backoff.ms int 20 >=1 read-only
    Longest pause between two checks whether the previous transaction is complete.
embedlog.group.max.pending.members int 1000 >=1 internal
    Member ids of a classic group whose clients have not joined yet. Beyond that, a join without an
    id is GROUP_MAX_SIZE_REACHED.
embedlog.max.groups int 10000 >=1 internal
    Groups of all kinds that a broker coordinates. A join or a commit that would create another is
    POLICY_VIOLATION. Existing groups always stay.
embedlog.max.share.partitions int 100000 >=1 internal
    Share partitions whose state a broker keeps, about 1 KiB each. The state of another cannot be
    initialized: POLICY_VIOLATION. Existing states always stay.
embedlog.max.transactional.ids int 100000 >=1 internal
    Transactional ids that a broker coordinates, about 1 KiB each. InitProducerId of another is
    POLICY_VIOLATION. Existing ids always stay.
embedlog.share.first.heartbeat.ms int 0 >=0 internal
    Heartbeat interval of a member of a share group that waits for its first partitions; their
    assignment does not wait for share.assignment.interval.ms. 0 is Kafka's way:
    share.heartbeat.interval.ms, so that the first record comes after 5 s.
errors.deadletterqueue.auto.create.topics.enable boolean false - cluster-wide
    Create missing dead letter topics of share groups.
errors.deadletterqueue.topic.name.prefix string dlq. - cluster-wide
    Required prefix of the names of dead letter topics.
group.consumer.assignment.interval.ms int 1000 >=0 cluster-wide
    Default of the group setting consumer.assignment.interval.ms.
group.consumer.assignor.offload.enable boolean true - internal
    Default of the group setting consumer.assignor.offload.enable. Accepted, not used: an
    assignor runs in the thread of its request.
group.consumer.assignors list uniform,range - read-only
    Assignors of consumer groups; the first is the default.
group.consumer.heartbeat.interval.ms int 5000 >=1 read-only
    Default of the group setting consumer.heartbeat.interval.ms.
group.consumer.max.assignment.interval.ms int 15000 >=0 read-only
    Upper bound of consumer.assignment.interval.ms.
group.consumer.max.heartbeat.interval.ms int 15000 >=1 read-only
    Upper bound of consumer.heartbeat.interval.ms.
group.consumer.max.session.timeout.ms int 60000 >=1 read-only
    Upper bound of consumer.session.timeout.ms.
group.consumer.max.size int 2147483647 >=1 read-only
    Members that a consumer group may have.
group.consumer.migration.policy string bidirectional \
any-case:DISABLED,DOWNGRADE,UPGRADE,BIDIRECTIONAL read-only
    Direction in which a group may change between the classic and the consumer protocol.
group.consumer.min.assignment.interval.ms int 0 >=0 read-only
    Lower bound of consumer.assignment.interval.ms.
group.consumer.min.heartbeat.interval.ms int 5000 >=1 read-only
    Lower bound of consumer.heartbeat.interval.ms.
group.consumer.min.session.timeout.ms int 45000 >=1 read-only
    Lower bound of consumer.session.timeout.ms.
group.consumer.regex.refresh.interval.ms int 600000 >=10000 internal
    How often subscriptions by pattern are matched again.
group.consumer.session.timeout.ms int 45000 >=1 read-only
    Default of the group setting consumer.session.timeout.ms.
group.coordinator.append.linger.ms int -1 >=-1 read-only
    How long the group coordinator gathers records for one batch; -1 adapts to the load. Accepted,
    not used.
group.coordinator.background.threads int 2 >=1 read-only
    Threads of the group coordinator for work that no request waits for. Accepted, not used.
group.coordinator.cached.buffer.max.bytes int 1048588 >=524288 cluster-wide
    Size up to which the coordinator keeps a buffer for reuse. Accepted, not used.
group.coordinator.rebalance.protocols list classic,consumer,streams \
list-of:consumer,classic,share,streams read-only
    Group protocols that are served.
group.coordinator.threads int 4 >=1 read-only
    Threads of the group coordinator. Accepted, not used: the caller's thread does the work.
group.initial.rebalance.delay.ms int 3000 - read-only
    How long a new classic group waits for more members; 0 in a cluster in memory, unless set.
group.max.session.timeout.ms int 1800000 - read-only
    Longest session timeout of a classic member.
group.max.size int 2147483647 >=1 read-only
    Members that a classic group may have.
group.min.session.timeout.ms int 6000 - read-only
    Shortest session timeout of a classic member.
group.share.assignment.interval.ms int 1000 >=0 cluster-wide
    Default of the group setting share.assignment.interval.ms.
group.share.assignor.offload.enable boolean true - internal
    Default of the group setting share.assignor.offload.enable. Accepted, not used: an
    assignor runs in the thread of its request.
group.share.assignors list simple - read-only
    Assignor of share groups: exactly one, and only simple is known.
group.share.delivery.count.limit int 5 2..10 read-only
    Default of the group setting share.delivery.count.limit.
group.share.dlq.manager.class.name string \
org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager - internal
    Java class that writes dead letters. Accepted, not used.
group.share.heartbeat.interval.ms int 5000 >=1 read-only
    Default of the group setting share.heartbeat.interval.ms.
group.share.initialize.retry.interval.ms int 30000 >=1 internal
    Pause before a share partition's state is initialised again.
group.share.max.assignment.interval.ms int 15000 >=0 read-only
    Upper bound of share.assignment.interval.ms.
group.share.max.delivery.count.limit int 10 5..25 read-only
    Upper bound of share.delivery.count.limit.
group.share.max.heartbeat.interval.ms int 15000 >=1 read-only
    Upper bound of share.heartbeat.interval.ms.
group.share.max.partition.max.record.locks int 4000 2000..10000 read-only
    Upper bound of share.partition.max.record.locks.
group.share.max.record.lock.duration.ms int 60000 30000..3600000 read-only
    Upper bound of share.record.lock.duration.ms.
group.share.max.session.timeout.ms int 60000 >=1 read-only
    Upper bound of share.session.timeout.ms.
group.share.max.share.sessions int 2000 >=1 read-only
    Share sessions that a broker keeps: one for each member that fetches from it.
group.share.max.size int 200 1..1000 read-only
    Members that a share group may have.
group.share.min.assignment.interval.ms int 0 >=0 read-only
    Lower bound of share.assignment.interval.ms.
group.share.min.delivery.count.limit int 2 2..5 read-only
    Lower bound of share.delivery.count.limit.
group.share.min.heartbeat.interval.ms int 5000 >=1 read-only
    Lower bound of share.heartbeat.interval.ms.
group.share.min.partition.max.record.locks int 100 100..2000 read-only
    Lower bound of share.partition.max.record.locks.
group.share.min.record.lock.duration.ms int 15000 1000..30000 read-only
    Lower bound of share.record.lock.duration.ms.
group.share.min.session.timeout.ms int 45000 >=1 read-only
    Lower bound of share.session.timeout.ms.
group.share.partition.max.record.locks int 2000 100..10000 read-only
    Default of the group setting share.partition.max.record.locks.
group.share.persister.class.name string \
org.apache.kafka.server.share.persister.DefaultStatePersister - internal
    Java class that stores share state. Accepted, not used.
group.share.record.lock.duration.ms int 30000 1000..3600000 read-only
    Default of the group setting share.record.lock.duration.ms.
group.share.session.timeout.ms int 45000 >=1 read-only
    Default of the group setting share.session.timeout.ms.
group.streams.acceptable.recovery.lag long 10000 >=0 internal
    Default of the group setting streams.acceptable.recovery.lag.
group.streams.assignment.interval.ms int 1000 >=0 cluster-wide
    Default of the group setting streams.assignment.interval.ms.
group.streams.assignor.offload.enable boolean true - internal
    Default of the group setting streams.assignor.offload.enable. Accepted, not used: an
    assignor runs in the thread of its request.
group.streams.assignors list sticky - read-only
    Assignors of streams groups; the first is the default. Only sticky is known.
group.streams.heartbeat.interval.ms int 5000 >=1 read-only
    Default of the group setting streams.heartbeat.interval.ms.
group.streams.initial.rebalance.delay.ms int 3000 >=0 read-only
    Default of the group setting streams.initial.rebalance.delay.ms.
group.streams.max.assignment.interval.ms int 15000 >=0 read-only
    Upper bound of streams.assignment.interval.ms.
group.streams.max.heartbeat.interval.ms int 15000 >=1 read-only
    Upper bound of streams.heartbeat.interval.ms.
group.streams.max.session.timeout.ms int 60000 >=1 read-only
    Upper bound of streams.session.timeout.ms.
group.streams.max.size int 2147483647 >=1 read-only
    Members that a streams group may have.
group.streams.max.standby.replicas int 2 >=0 read-only
    Upper bound of streams.num.standby.replicas.
group.streams.max.warmup.replicas int 20 >=0 internal
    Upper bound of streams.num.warmup.replicas. Accepted, not used.
group.streams.min.assignment.interval.ms int 0 >=0 read-only
    Lower bound of streams.assignment.interval.ms.
group.streams.min.heartbeat.interval.ms int 5000 >=1 read-only
    Lower bound of streams.heartbeat.interval.ms.
group.streams.min.session.timeout.ms int 45000 >=1 read-only
    Lower bound of streams.session.timeout.ms.
group.streams.min.task.offset.interval.ms int 15000 >=1 internal
    Lower bound of streams.task.offset.interval.ms.
group.streams.num.standby.replicas int 0 >=0 read-only
    Default of the group setting streams.num.standby.replicas.
group.streams.num.warmup.replicas int 2 >=0 internal
    Default of the group setting streams.num.warmup.replicas. Accepted, not used.
group.streams.rack.aware.assignment.tags list "" - read-only
    Default of the group setting streams.rack.aware.assignment.tags.
group.streams.session.timeout.ms int 45000 >=1 read-only
    Default of the group setting streams.session.timeout.ms.
group.streams.task.offset.interval.ms int 60000 >=1 internal
    Default of the group setting streams.task.offset.interval.ms.
group.streams.topology.description.plugin.class class null - read-only
    Python class that keeps descriptions of topologies, as module.Class; none by default. See
    coordinator/group/streams/descriptions.py.
offset.metadata.max.bytes int 4096 - read-only
    Largest text that may go with a committed offset.
offsets.commit.timeout.ms int 5000 >=1 read-only
    Longest wait for an offset commit to be stored.
offsets.load.buffer.size int 5242880 >=1 read-only
    Bytes read at a time when a group coordinator loads its log. Accepted, not used.
offsets.retention.check.interval.ms long 600000 >=1 read-only
    How often expired offsets are looked for.
offsets.retention.minutes int 10080 >=1 read-only
    How long offsets outlive the last member of their group.
offsets.topic.compression.codec int 0 - read-only
    Codec id of the batches in __consumer_offsets.
offsets.topic.num.partitions int 50 >=1 read-only
    Partitions of __consumer_offsets. Do not change the number once the topic exists.
offsets.topic.replication.factor short 3 >=1 read-only
    Replicas of __consumer_offsets, at most the number of brokers.
offsets.topic.segment.bytes int 104857600 >=1 read-only
    Segment size of __consumer_offsets.
server.max.startup.time.ms long 9223372036854775807 >=0 internal
    Time a broker may take to start. Accepted, not used.
share.coordinator.append.linger.ms int -1 >=-1 read-only
    How long the share coordinator gathers records for one batch; -1 adapts to the load. Accepted,
    not used.
share.coordinator.cached.buffer.max.bytes int 1048588 >=524288 cluster-wide
    Size up to which the share coordinator keeps a buffer for reuse. Accepted, not used.
share.coordinator.cold.partition.snapshot.interval.ms int 300000 >=1 internal
    How long an idle share partition goes without a new snapshot.
share.coordinator.load.buffer.size int 5242880 >=1 read-only
    Bytes read at a time when a share coordinator loads its log. Accepted, not used.
share.coordinator.snapshot.update.records.per.snapshot int 500 0..500 read-only
    Updates of a share partition between two snapshots.
share.coordinator.state.topic.compression.codec int 0 - read-only
    Codec id of the batches in __share_group_state.
share.coordinator.state.topic.min.isr short 2 >=1 read-only
    min.insync.replicas of __share_group_state.
share.coordinator.state.topic.num.partitions int 50 >=1 read-only
    Partitions of __share_group_state. Do not change the number once the topic exists.
share.coordinator.state.topic.prune.interval.ms int 300000 >=1 internal
    How often records of __share_group_state that snapshots replace are deleted.
share.coordinator.state.topic.replication.factor short 3 >=1 read-only
    Replicas of __share_group_state, at most the number of brokers.
share.coordinator.state.topic.segment.bytes int 104857600 >=1 read-only
    Segment size of __share_group_state.
share.coordinator.threads int 1 >=1 read-only
    Threads of the share coordinator. Accepted, not used: the caller's thread does the work.
share.coordinator.write.timeout.ms int 5000 >=1 read-only
    Longest wait for share state to be stored.
share.fetch.purgatory.purge.interval.requests int 1000 - read-only
    Finished share fetches that may stay in the purgatory. Accepted, not used: they wait with other
    fetches.
transaction.abort.timed.out.transaction.cleanup.interval.ms int 10000 >=1 read-only
    How often timed-out transactions are looked for.
transaction.max.timeout.ms int 900000 >=1 read-only
    Longest timeout of a transactional producer.
transaction.partition.verification.enable boolean true - cluster-wide
    Append transactional records only if the partition was added to their transaction.
transaction.remove.expired.transaction.cleanup.interval.ms int 3600000 >=1 read-only
    How often expired transactional ids are looked for.
transaction.state.log.load.buffer.size int 5242880 >=1 read-only
    Bytes read at a time when a transaction coordinator loads its log. Accepted, not used.
transaction.state.log.min.isr int 2 >=1 read-only
    min.insync.replicas of __transaction_state.
transaction.state.log.num.partitions int 50 >=1 read-only
    Partitions of __transaction_state. Do not change the number once the topic exists.
transaction.state.log.replication.factor short 3 >=1 read-only
    Replicas of __transaction_state, at most the number of brokers.
transaction.state.log.segment.bytes int 104857600 >=1 read-only
    Segment size of __transaction_state.
transaction.two.phase.commit.enable boolean false - read-only
    Allow two-phase commits (KIP-939). Transactions of their producers have no timeout.
transactional.id.expiration.ms int 604800000 >=1 read-only
    Idle time after which a transactional id is forgotten.
unstable.api.versions.enable boolean false - internal
    Serve versions that are still in development: InitProducerId 6, of two-phase commits.
unstable.feature.versions.enable boolean false - internal
    Offer feature levels that are still in development. Accepted, not used.
"""
