"""Broker settings of the cluster: controller, replication, tiered storage."""

TABLE = """
auto.leader.rebalance.enable boolean true - read-only
    Give leadership back to preferred replicas automatically, if there are several brokers.
broker.heartbeat.interval.ms int 2000 - read-only
    Time between heartbeats from broker to controller, if there are several brokers.
broker.id int -1 - read-only
    Number of this broker; the same as node.id.
broker.rack string null - read-only
    Rack of this broker, for clients and for the placement of replicas.
broker.session.timeout.ms int 9000 - read-only
    Silence after which the controller fences a broker, if there are several brokers.
controller.listener.names list required - read-only
    Listeners of the controller.
controller.performance.always.log.threshold.ms long 2000 >=0 internal
    Controller events slower than this are logged. Accepted, not used.
controller.performance.sample.period.ms long 60000 >=100 internal
    How often controller performance is logged. Accepted, not used.
controller.quorum.append.linger.ms int 25 >=0 read-only
    How long the quorum gathers metadata records. Accepted, not used.
controller.quorum.auto.join.enable boolean false - read-only
    Let controllers join the quorum by themselves. Accepted, not used.
controller.quorum.bootstrap.servers list "" - read-only
    Addresses by which the quorum is found. Accepted, not used.
controller.quorum.election.backoff.max.ms int 1000 >=0 read-only
    Longest pause between elections of the quorum. Accepted, not used.
controller.quorum.election.timeout.ms int 1000 >=0 read-only
    Wait before a new election of the quorum. Accepted, not used.
controller.quorum.fetch.max.bytes int 1048576 >=1 read-only
    Largest fetch of metadata in the quorum. Accepted, not used.
controller.quorum.fetch.snapshot.max.bytes int 1048576 >=1 read-only
    Largest fetch of a metadata snapshot in the quorum. Accepted, not used.
controller.quorum.fetch.timeout.ms int 2000 >=0 read-only
    Silence after which the quorum elects again. Accepted, not used.
controller.quorum.request.timeout.ms int 2000 >=0 read-only
    Longest wait for an answer in the quorum. Accepted, not used.
controller.quorum.retry.backoff.ms int 20 >=0 read-only
    Pause before a request in the quorum is repeated. Accepted, not used.
controller.quorum.voters list "" - read-only
    Voters of the quorum, as id@host:port. Accepted, not used: the controller is in the process.
controller.quota.window.num int 11 >=1 read-only
    Samples kept for the quota of controller changes. Accepted, not used.
controller.quota.window.size.seconds int 1 >=1 read-only
    Span of one sample of the quota of controller changes. Accepted, not used.
controller.socket.timeout.ms int 30000 - read-only
    Longest wait for the controller's answer over a socket. Accepted, not used.
follower.fetch.last.tiered.offset.enable boolean false - cluster-wide
    Let new followers begin behind tiered data. Accepted, not used.
initial.broker.registration.timeout.ms int 60000 - read-only
    Time a broker may take to register with the controller. Accepted, not used.
leader.imbalance.check.interval.seconds long 300 >=1 read-only
    How often the balance of leaders is checked.
node.id int required >=0 read-only
    Number of this node in the cluster.
num.replica.alter.log.dirs.threads int null - read-only
    Threads that move replicas between directories. Accepted, not used.
num.replica.fetchers int 1 >=1 cluster-wide
    Fetchers for each leader that this broker follows. Accepted, not used.
process.roles list required list-of:broker,controller read-only
    What this process is: broker, controller or both.
remote.fetch.max.wait.ms int 500 >=1 cluster-wide
    Longest wait for tiered data. Accepted, not used.
remote.list.offsets.request.timeout.ms long 30000 >=1 cluster-wide
    Longest wait for offsets of tiered data. Accepted, not used.
remote.log.index.file.cache.total.size.bytes long 1073741824 >=1 cluster-wide
    Room for indexes of tiered segments. Accepted, not used.
remote.log.index.file.cache.ttl.ms long 900000 >=-1 internal
    How long indexes of tiered segments are kept. Accepted, not used.
remote.log.manager.copier.thread.pool.size int 10 >=1 cluster-wide
    Threads that copy to tiered storage. Accepted, not used.
remote.log.manager.copy.max.bytes.per.second long 9223372036854775807 >=1 cluster-wide
    Speed limit of copies to tiered storage. Accepted, not used.
remote.log.manager.copy.quota.window.num int 11 >=1 read-only
    Samples kept for the speed limit of copies. Accepted, not used.
remote.log.manager.copy.quota.window.size.seconds int 1 >=1 read-only
    Span of one sample of the speed limit of copies. Accepted, not used.
remote.log.manager.expiration.thread.pool.size int 10 >=1 cluster-wide
    Threads that remove old tiered data. Accepted, not used.
remote.log.manager.fetch.max.bytes.per.second long 9223372036854775807 >=1 cluster-wide
    Speed limit of reads from tiered storage. Accepted, not used.
remote.log.manager.fetch.quota.window.num int 11 >=1 read-only
    Samples kept for the speed limit of reads. Accepted, not used.
remote.log.manager.fetch.quota.window.size.seconds int 1 >=1 read-only
    Span of one sample of the speed limit of reads. Accepted, not used.
remote.log.manager.follower.thread.pool.size int 2 >=1 cluster-wide
    Threads that follow tiered storage. Accepted, not used.
remote.log.manager.task.interval.ms long 30000 >=1 read-only
    Time between two rounds of copying and deleting tiered data. Accepted, not used.
remote.log.manager.task.retry.backoff.max.ms long 30000 >=1 internal
    Longest pause before a tiered storage task is repeated. Accepted, not used.
remote.log.manager.task.retry.backoff.ms long 500 >=1 internal
    First pause before a tiered storage task is repeated. Accepted, not used.
remote.log.manager.task.retry.jitter double 0.2 0..0.5 internal
    Randomness of the pauses before a tiered storage task is repeated. Accepted, not used.
remote.log.manager.thread.pool.size int 2 >=1 read-only
    Threads that copy and delete tiered data. Accepted, not used.
remote.log.metadata.custom.metadata.max.bytes int 128 >=0 read-only
    Largest extra metadata of a tiered segment. Accepted, not used.
remote.log.metadata.manager.class.name string \
org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager non-empty \
read-only
    Java class that keeps metadata of tiered storage. Accepted, not used.
remote.log.metadata.manager.class.path string null - read-only
    Path of the class that keeps metadata of tiered storage. Accepted, not used.
remote.log.metadata.manager.impl.prefix string rlmm.config. non-empty read-only
    Prefix of settings for the class that keeps metadata of tiered storage. Accepted, not used.
remote.log.metadata.manager.listener.name string null non-empty read-only
    Listener used by the class that keeps metadata of tiered storage. Accepted, not used.
remote.log.reader.max.pending.tasks int 100 >=1 read-only
    Reads from tiered storage that may wait. Accepted, not used.
remote.log.reader.threads int 10 >=1 cluster-wide
    Threads that read from tiered storage. Accepted, not used.
remote.log.storage.manager.class.name string null non-empty read-only
    Java class that reads and writes tiered data. Accepted, not used.
remote.log.storage.manager.class.path string null - read-only
    Path of the class that reads and writes tiered data. Accepted, not used.
remote.log.storage.manager.impl.prefix string rsm.config. non-empty read-only
    Prefix of settings for the class that reads and writes tiered data. Accepted, not used.
remote.log.storage.system.enable boolean false - read-only
    Turn tiered storage on. Accepted, not used: there is none.
replica.fetch.backoff.ms int 1000 >=0 read-only
    Pause of a follower after a failed fetch.
replica.fetch.max.bytes int 1048576 >=0 read-only
    Bytes of one partition that a follower requests in one fetch.
replica.fetch.min.bytes int 1 - read-only
    Bytes that a follower's fetch waits for.
replica.fetch.response.max.bytes int 10485760 >=0 read-only
    Bytes of all partitions that a follower requests in one fetch.
replica.fetch.wait.max.ms int 500 - read-only
    Longest wait of a follower's fetch.
replica.high.watermark.checkpoint.interval.ms long 5000 - read-only
    Time between checkpoints of high watermarks. Accepted, not used.
replica.lag.time.max.ms long 30000 - read-only
    How long a follower may lag before it leaves the in-sync replicas.
replica.selector.class string null - read-only
    Java class that picks the replica that a consumer reads. The only supported class is
    org.apache.kafka.common.replica.RackAwareReplicaSelector: a replica in the consumer's rack.
replica.socket.receive.buffer.bytes int 65536 - read-only
    Receive buffer of a follower's connection. Accepted, not used.
replica.socket.timeout.ms int 30000 - read-only
    Longest wait of a follower for an answer.
replication.quota.window.num int 11 >=1 read-only
    Samples kept for replication quotas.
replication.quota.window.size.seconds int 1 >=1 read-only
    Span of one sample of a replication quota.
"""
