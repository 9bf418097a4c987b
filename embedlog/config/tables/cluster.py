"""Broker settings of the cluster: controller, replication, remote storage.

The format is drawn in `embedlog.config.definitions`.
"""

TABLE = """
auto.leader.rebalance.enable boolean true - read-only
broker.heartbeat.interval.ms int 2000 - read-only
broker.id int -1 - read-only
broker.rack string null - read-only
broker.session.timeout.ms int 9000 - read-only
controller.listener.names list required - read-only
controller.performance.always.log.threshold.ms long 2000 >=0 internal
controller.performance.sample.period.ms long 60000 >=100 internal
controller.quorum.append.linger.ms int 25 >=0 read-only
controller.quorum.auto.join.enable boolean false - read-only
controller.quorum.bootstrap.servers list "" - read-only
controller.quorum.election.backoff.max.ms int 1000 >=0 read-only
controller.quorum.election.timeout.ms int 1000 >=0 read-only
controller.quorum.fetch.max.bytes int 1048576 >=1 read-only
controller.quorum.fetch.snapshot.max.bytes int 1048576 >=1 read-only
controller.quorum.fetch.timeout.ms int 2000 >=0 read-only
controller.quorum.request.timeout.ms int 2000 >=0 read-only
controller.quorum.retry.backoff.ms int 20 >=0 read-only
controller.quorum.voters list "" - read-only
controller.quota.window.num int 11 >=1 read-only
controller.quota.window.size.seconds int 1 >=1 read-only
controller.socket.timeout.ms int 30000 - read-only
follower.fetch.last.tiered.offset.enable boolean false - cluster-wide
initial.broker.registration.timeout.ms int 60000 - read-only
leader.imbalance.check.interval.seconds long 300 >=1 read-only
node.id int required >=0 read-only
num.replica.alter.log.dirs.threads int null - read-only
num.replica.fetchers int 1 >=1 cluster-wide
process.roles list required list-of:broker,controller read-only
remote.fetch.max.wait.ms int 500 >=1 cluster-wide
remote.list.offsets.request.timeout.ms long 30000 >=1 cluster-wide
remote.log.index.file.cache.total.size.bytes long 1073741824 >=1 cluster-wide
remote.log.index.file.cache.ttl.ms long 900000 >=-1 internal
remote.log.manager.copier.thread.pool.size int 10 >=1 cluster-wide
remote.log.manager.copy.max.bytes.per.second long 9223372036854775807 >=1 cluster-wide
remote.log.manager.copy.quota.window.num int 11 >=1 read-only
remote.log.manager.copy.quota.window.size.seconds int 1 >=1 read-only
remote.log.manager.expiration.thread.pool.size int 10 >=1 cluster-wide
remote.log.manager.fetch.max.bytes.per.second long 9223372036854775807 >=1 cluster-wide
remote.log.manager.fetch.quota.window.num int 11 >=1 read-only
remote.log.manager.fetch.quota.window.size.seconds int 1 >=1 read-only
remote.log.manager.follower.thread.pool.size int 2 >=1 cluster-wide
remote.log.manager.task.interval.ms long 30000 >=1 read-only
remote.log.manager.task.retry.backoff.max.ms long 30000 >=1 internal
remote.log.manager.task.retry.backoff.ms long 500 >=1 internal
remote.log.manager.task.retry.jitter double 0.2 0..0.5 internal
remote.log.manager.thread.pool.size int 2 >=1 read-only
remote.log.metadata.custom.metadata.max.bytes int 128 >=0 read-only
remote.log.metadata.manager.class.name string \
org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager non-empty \
read-only
remote.log.metadata.manager.class.path string null - read-only
remote.log.metadata.manager.impl.prefix string rlmm.config. non-empty read-only
remote.log.metadata.manager.listener.name string null non-empty read-only
remote.log.reader.max.pending.tasks int 100 >=1 read-only
remote.log.reader.threads int 10 >=1 cluster-wide
remote.log.storage.manager.class.name string null non-empty read-only
remote.log.storage.manager.class.path string null - read-only
remote.log.storage.manager.impl.prefix string rsm.config. non-empty read-only
remote.log.storage.system.enable boolean false - read-only
replica.fetch.backoff.ms int 1000 >=0 read-only
replica.fetch.max.bytes int 1048576 >=0 read-only
replica.fetch.min.bytes int 1 - read-only
replica.fetch.response.max.bytes int 10485760 >=0 read-only
replica.fetch.wait.max.ms int 500 - read-only
replica.high.watermark.checkpoint.interval.ms long 5000 - read-only
replica.lag.time.max.ms long 30000 - read-only
replica.selector.class string null - read-only
replica.socket.receive.buffer.bytes int 65536 - read-only
replica.socket.timeout.ms int 30000 - read-only
replication.quota.window.num int 11 >=1 read-only
replication.quota.window.size.seconds int 1 >=1 read-only
"""
