"""Broker settings of topics, their logs, the data directories and the metadata log."""

TABLE = """
alter.config.policy.class.name class null - read-only
    Java class that judges changes of settings. Accepted, not used.
auto.create.topics.enable boolean true - read-only
    Create a topic when a client produces to it or asks for its metadata.
embedlog.auto.create.topics.await boolean false - internal
    If true, the answer to a Metadata request contains the topic that the request creates (see
    auto.create.topics.enable). If false, the topic is UNKNOWN_TOPIC_OR_PARTITION in that answer,
    as in Kafka, and clients ask again after a pause.
embedlog.data.dir.mode string 0700 one-of:0700,0750,0755,0770,0775,0777 internal
    Permissions of a new data directory, as far as the umask of the process allows. An existing
    directory keeps its own.
embedlog.max.partition.producer.ids int 10000 >=1 internal
    Idempotent producers that a partition remembers. Beyond this number it forgets the producers
    that were idle for longest, and accepts their next batch as from a new producer.
compression.gzip.level int -1 1..9|-1 cluster-wide
    Default of the topic setting with the same name.
compression.lz4.level int 9 1..17 cluster-wide
    Default of the topic setting with the same name.
compression.type string producer one-of:uncompressed,zstd,lz4,snappy,gzip,producer cluster-wide
    Default of the topic setting with the same name.
compression.zstd.level int 3 -131072..22 cluster-wide
    Default of the topic setting with the same name.
cordoned.log.dirs list "" - per-broker
    Log directories that get no new replicas; * means all. A broker whose directories are all
    cordoned gets no new replicas.
create.topic.policy.class.name class null - read-only
    Java class that judges new topics. Accepted, not used.
default.replication.factor int 1 - read-only
    Replicas of a topic whose creator names no number.
delete.records.purgatory.purge.interval.requests int 1 - read-only
    Finished DeleteRecords operations that may stay in the purgatory. Accepted, not used.
delete.topic.enable boolean true - read-only
    Allow the deletion of topics.
fetch.purgatory.purge.interval.requests int 1000 - read-only
    Finished fetches that may stay in the purgatory. Accepted, not used.
internal.metadata.delete.delay.millis long 60000 - internal
    Time before old metadata segments are removed. Accepted, not used.
internal.metadata.log.segment.bytes int null - internal
    Size of metadata segments in tests of Kafka. Accepted, not used.
internal.metadata.max.batch.size.in.bytes int 8388608 - internal
    Largest batch of metadata records. Accepted, not used.
log.cleaner.backoff.ms long 15000 >=0 cluster-wide
    Pause of the cleaner when there is nothing to compact.
log.cleaner.dedupe.buffer.size long 134217728 - cluster-wide
    Memory for the keys of logs under compaction.
log.cleaner.delete.retention.ms long 86400000 >=0 cluster-wide
    Default of the topic setting delete.retention.ms.
log.cleaner.enable boolean true - read-only
    Compact the topics whose cleanup.policy contains compact.
log.cleaner.io.buffer.load.factor double 0.9 - cluster-wide
    How full the cleaner's memory may get.
log.cleaner.io.buffer.size int 524288 >=0 cluster-wide
    Memory for reading and writing while compacting. Accepted, not used.
log.cleaner.io.max.bytes.per.second double 1.7976931348623157E308 - cluster-wide
    Speed limit of compaction.
log.cleaner.max.compaction.lag.ms long 9223372036854775807 >=1 cluster-wide
    Default of the topic setting max.compaction.lag.ms.
log.cleaner.min.cleanable.ratio double 0.5 0..1 cluster-wide
    Default of the topic setting min.cleanable.dirty.ratio.
log.cleaner.min.compaction.lag.ms long 0 >=0 cluster-wide
    Default of the topic setting min.compaction.lag.ms.
log.cleaner.threads int 1 >=0 cluster-wide
    Threads that compact. In embedlog the thread that drives the scheduler compacts instead.
log.cleanup.policy list delete list-of:compact,delete cluster-wide
    Default of the topic setting cleanup.policy.
log.dir list /tmp/kafka-logs - read-only
    The data directories if log.dirs is not set. Ignored: embedlog uses the opened directories.
log.dir.failure.timeout.ms long 30000 >=1 read-only
    Time after which a broker stops when it cannot report a failed directory. Accepted, not used.
log.dirs list null - read-only
    The data directories, the first with the metadata log; set to the opened directories.
log.flush.interval.messages long 9223372036854775807 >=1 cluster-wide
    Default of the topic setting flush.messages.
log.flush.interval.ms long null - cluster-wide
    Default of the topic setting flush.ms.
log.flush.offset.checkpoint.interval.ms int 60000 >=0 read-only
    Time between checkpoints of how far logs are synced. Accepted, not used.
log.flush.scheduler.interval.ms long 9223372036854775807 - read-only
    How often logs are looked at for flush.ms.
log.flush.start.offset.checkpoint.interval.ms int 60000 >=0 read-only
    Time between checkpoints of where logs start. Accepted, not used.
log.index.interval.bytes int 4096 >=0 cluster-wide
    Default of the topic setting index.interval.bytes.
log.index.size.max.bytes int 10485760 >=4 cluster-wide
    Default of the topic setting segment.index.bytes.
log.initial.task.delay.ms long 30000 >=0 internal
    Time after opening before background work on logs begins.
log.local.retention.bytes long -2 >=-2 cluster-wide
    Default of the topic setting local.retention.bytes. Accepted, not used.
log.local.retention.ms long -2 >=-2 cluster-wide
    Default of the topic setting local.retention.ms. Accepted, not used.
log.message.timestamp.after.max.ms long 3600000 >=0 cluster-wide
    Default of the topic setting message.timestamp.after.max.ms.
log.message.timestamp.before.max.ms long 9223372036854775807 >=0 cluster-wide
    Default of the topic setting message.timestamp.before.max.ms.
log.message.timestamp.type string CreateTime one-of:CreateTime,LogAppendTime cluster-wide
    Default of the topic setting message.timestamp.type.
log.preallocate boolean false - cluster-wide
    Default of the topic setting preallocate.
log.remote.copy.lag.bytes long -1 >=-1 cluster-wide
    Default of the topic setting remote.copy.lag.bytes. Accepted, not used.
log.remote.copy.lag.ms long 0 >=-1 cluster-wide
    Default of the topic setting remote.copy.lag.ms. Accepted, not used.
log.retention.bytes long -1 - cluster-wide
    Default of the topic setting retention.bytes.
log.retention.check.interval.ms long 300000 >=1 read-only
    How often logs are looked at for retention.
log.retention.hours int 168 - read-only
    Default of retention.ms in hours, when neither minutes nor milliseconds are set.
log.retention.minutes int null - read-only
    Default of retention.ms in minutes, when no milliseconds are set.
log.retention.ms long null - cluster-wide
    Default of the topic setting retention.ms.
log.roll.hours int 168 >=1 read-only
    Default of segment.ms in hours, when no milliseconds are set.
log.roll.jitter.hours int 0 >=0 read-only
    Default of segment.jitter.ms in hours, when no milliseconds are set.
log.roll.jitter.ms long null - cluster-wide
    Default of the topic setting segment.jitter.ms.
log.roll.ms long null - cluster-wide
    Default of the topic setting segment.ms.
log.segment.bytes int 1073741824 >=1048576 cluster-wide
    Default of the topic setting segment.bytes.
log.segment.delete.delay.ms long 60000 >=0 cluster-wide
    Default of the topic setting file.delete.delay.ms.
max.decompressed.message.bytes int 67108864 1..2147483639 cluster-wide
    Default of the topic setting with the same name.
message.max.bytes int 1048588 >=0 cluster-wide
    Default of the topic setting max.message.bytes.
metadata.log.dir string null - read-only
    Directory of the metadata log. Accepted, not used: the metadata log lies beside the other logs.
metadata.log.max.record.bytes.between.snapshots long 20971520 >=1 read-only
    Metadata written before a snapshot is made. Accepted, not used.
metadata.log.max.snapshot.interval.ms long 3600000 >=0 read-only
    Time after which a metadata snapshot is made. Accepted, not used.
metadata.log.segment.bytes int 1073741824 >=8388608 read-only
    Size of metadata segments. Accepted, not used.
metadata.log.segment.ms long 604800000 - read-only
    Age of metadata segments. Accepted, not used.
metadata.max.idle.interval.ms int 500 >=0 read-only
    Time between empty metadata records. Accepted, not used.
metadata.max.retention.bytes long 104857600 - read-only
    Size of kept metadata. Accepted, not used.
metadata.max.retention.ms long 604800000 - read-only
    Age of kept metadata. Accepted, not used.
min.insync.replicas int 1 >=1 cluster-wide
    Default of the topic setting with the same name.
num.partitions int 1 >=1 read-only
    Partitions of a topic whose creator names no count.
num.recovery.threads.per.data.dir int 2 >=1 cluster-wide
    Threads that recover logs after an unclean stop. Accepted, not used.
producer.id.expiration.check.interval.ms int 600000 >=1 internal
    How often idle producer ids are looked for. Accepted, not used.
producer.id.expiration.ms int 86400000 >=1 cluster-wide
    Idle time after which a partition forgets a producer id.
producer.purgatory.purge.interval.requests int 1000 - read-only
    Finished produces that may stay in the purgatory. Accepted, not used.
unclean.leader.election.enable boolean false - cluster-wide
    Default of the topic setting with the same name.
unclean.leader.election.interval.ms long 300000 >=1 internal
    How often leaderless partitions are looked at.
"""
