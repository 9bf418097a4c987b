"""Broker settings of groups, transactions and their internal topics.

The format is drawn in `embedlog.config.definitions`.
"""

TABLE = """
add.partitions.to.txn.retry.backoff.max.ms int 100 >=0 read-only
add.partitions.to.txn.retry.backoff.ms int 20 >=1 read-only
errors.deadletterqueue.auto.create.topics.enable boolean false - cluster-wide
errors.deadletterqueue.topic.name.prefix string dlq. - cluster-wide
group.consumer.assignment.interval.ms int 1000 >=0 cluster-wide
group.consumer.assignor.offload.enable boolean true - internal
group.consumer.assignors list uniform,range - read-only
group.consumer.heartbeat.interval.ms int 5000 >=1 read-only
group.consumer.max.assignment.interval.ms int 15000 >=0 read-only
group.consumer.max.heartbeat.interval.ms int 15000 >=1 read-only
group.consumer.max.session.timeout.ms int 60000 >=1 read-only
group.consumer.max.size int 2147483647 >=1 read-only
group.consumer.migration.policy string bidirectional \
any-case:DISABLED,DOWNGRADE,UPGRADE,BIDIRECTIONAL read-only
group.consumer.min.assignment.interval.ms int 0 >=0 read-only
group.consumer.min.heartbeat.interval.ms int 5000 >=1 read-only
group.consumer.min.session.timeout.ms int 45000 >=1 read-only
group.consumer.regex.refresh.interval.ms int 600000 >=10000 internal
group.consumer.session.timeout.ms int 45000 >=1 read-only
group.coordinator.append.linger.ms int -1 >=-1 read-only
group.coordinator.background.threads int 2 >=1 read-only
group.coordinator.cached.buffer.max.bytes int 1048588 >=524288 cluster-wide
group.coordinator.rebalance.protocols list classic,consumer,streams \
list-of:consumer,classic,share,streams read-only
group.coordinator.threads int 4 >=1 read-only
group.initial.rebalance.delay.ms int 3000 - read-only
group.max.session.timeout.ms int 1800000 - read-only
group.max.size int 2147483647 >=1 read-only
group.min.session.timeout.ms int 6000 - read-only
group.share.assignment.interval.ms int 1000 >=0 cluster-wide
group.share.assignor.offload.enable boolean true - internal
group.share.assignors list simple - read-only
group.share.delivery.count.limit int 5 2..10 read-only
group.share.dlq.manager.class.name string \
org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager - internal
group.share.heartbeat.interval.ms int 5000 >=1 read-only
group.share.initialize.retry.interval.ms int 30000 >=1 internal
group.share.max.assignment.interval.ms int 15000 >=0 read-only
group.share.max.delivery.count.limit int 10 5..25 read-only
group.share.max.heartbeat.interval.ms int 15000 >=1 read-only
group.share.max.partition.max.record.locks int 4000 2000..10000 read-only
group.share.max.record.lock.duration.ms int 60000 30000..3600000 read-only
group.share.max.session.timeout.ms int 60000 >=1 read-only
group.share.max.share.sessions int 2000 >=1 read-only
group.share.max.size int 200 1..1000 read-only
group.share.min.assignment.interval.ms int 0 >=0 read-only
group.share.min.delivery.count.limit int 2 2..5 read-only
group.share.min.heartbeat.interval.ms int 5000 >=1 read-only
group.share.min.partition.max.record.locks int 100 100..2000 read-only
group.share.min.record.lock.duration.ms int 15000 1000..30000 read-only
group.share.min.session.timeout.ms int 45000 >=1 read-only
group.share.partition.max.record.locks int 2000 100..10000 read-only
group.share.persister.class.name string \
org.apache.kafka.server.share.persister.DefaultStatePersister - internal
group.share.record.lock.duration.ms int 30000 1000..3600000 read-only
group.share.session.timeout.ms int 45000 >=1 read-only
group.streams.acceptable.recovery.lag long 10000 >=0 internal
group.streams.assignment.interval.ms int 1000 >=0 cluster-wide
group.streams.assignor.offload.enable boolean true - internal
group.streams.assignors list sticky - read-only
group.streams.heartbeat.interval.ms int 5000 >=1 read-only
group.streams.initial.rebalance.delay.ms int 3000 >=0 read-only
group.streams.max.assignment.interval.ms int 15000 >=0 read-only
group.streams.max.heartbeat.interval.ms int 15000 >=1 read-only
group.streams.max.session.timeout.ms int 60000 >=1 read-only
group.streams.max.size int 2147483647 >=1 read-only
group.streams.max.standby.replicas int 2 >=0 read-only
group.streams.max.warmup.replicas int 20 >=0 internal
group.streams.min.assignment.interval.ms int 0 >=0 read-only
group.streams.min.heartbeat.interval.ms int 5000 >=1 read-only
group.streams.min.session.timeout.ms int 45000 >=1 read-only
group.streams.min.task.offset.interval.ms int 15000 >=1 internal
group.streams.num.standby.replicas int 0 >=0 read-only
group.streams.num.warmup.replicas int 2 >=0 internal
group.streams.rack.aware.assignment.tags list "" - read-only
group.streams.session.timeout.ms int 45000 >=1 read-only
group.streams.task.offset.interval.ms int 60000 >=1 internal
group.streams.topology.description.plugin.class class null - read-only
offset.metadata.max.bytes int 4096 - read-only
offsets.commit.timeout.ms int 5000 >=1 read-only
offsets.load.buffer.size int 5242880 >=1 read-only
offsets.retention.check.interval.ms long 600000 >=1 read-only
offsets.retention.minutes int 10080 >=1 read-only
offsets.topic.compression.codec int 0 - read-only
offsets.topic.num.partitions int 50 >=1 read-only
offsets.topic.replication.factor short 3 >=1 read-only
offsets.topic.segment.bytes int 104857600 >=1 read-only
server.max.startup.time.ms long 9223372036854775807 >=0 internal
share.coordinator.append.linger.ms int -1 >=-1 read-only
share.coordinator.cached.buffer.max.bytes int 1048588 >=524288 cluster-wide
share.coordinator.cold.partition.snapshot.interval.ms int 300000 >=1 internal
share.coordinator.load.buffer.size int 5242880 >=1 read-only
share.coordinator.snapshot.update.records.per.snapshot int 500 0..500 read-only
share.coordinator.state.topic.compression.codec int 0 - read-only
share.coordinator.state.topic.min.isr short 2 >=1 read-only
share.coordinator.state.topic.num.partitions int 50 >=1 read-only
share.coordinator.state.topic.prune.interval.ms int 300000 >=1 internal
share.coordinator.state.topic.replication.factor short 3 >=1 read-only
share.coordinator.state.topic.segment.bytes int 104857600 >=1 read-only
share.coordinator.threads int 1 >=1 read-only
share.coordinator.write.timeout.ms int 5000 >=1 read-only
share.fetch.purgatory.purge.interval.requests int 1000 - read-only
transaction.abort.timed.out.transaction.cleanup.interval.ms int 10000 >=1 read-only
transaction.max.timeout.ms int 900000 >=1 read-only
transaction.partition.verification.enable boolean true - cluster-wide
transaction.remove.expired.transaction.cleanup.interval.ms int 3600000 >=1 read-only
transaction.state.log.load.buffer.size int 5242880 >=1 read-only
transaction.state.log.min.isr int 2 >=1 read-only
transaction.state.log.num.partitions int 50 >=1 read-only
transaction.state.log.replication.factor short 3 >=1 read-only
transaction.state.log.segment.bytes int 104857600 >=1 read-only
transaction.two.phase.commit.enable boolean false - read-only
transactional.id.expiration.ms int 604800000 >=1 read-only
unstable.api.versions.enable boolean false - internal
unstable.feature.versions.enable boolean false - internal
"""
