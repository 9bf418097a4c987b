"""Settings of a topic; `broker_and_topic` has four more settings."""

TABLE = """
cleanup.policy list delete list-of:compact,delete cluster-wide
    How old data is removed: delete removes whole segments, compact keeps the last record of each
    key. The list may name both. If it is empty, old data is kept.
compression.gzip.level int -1 1..9|-1 cluster-wide
    Effort of gzip when the broker compresses; -1 leaves it to the codec.
compression.lz4.level int 9 1..17 cluster-wide
    Effort of lz4 when the broker compresses.
compression.type string producer one-of:uncompressed,zstd,lz4,snappy,gzip,producer cluster-wide
    Codec of the stored batches; producer keeps the one they arrived with.
compression.zstd.level int 3 -131072..22 cluster-wide
    Effort of zstd when the broker compresses.
delete.retention.ms long 86400000 >=0 cluster-wide
    How long a compacted topic keeps the tombstone of a deleted key.
errors.deadletterqueue.group.enable boolean false - cluster-wide
    Allow share groups to use this topic as their dead letter topic.
file.delete.delay.ms long 60000 >=0 cluster-wide
    Time between taking a segment out of the log and removing its files.
flush.messages long 9223372036854775807 >=1 cluster-wide
    Records after which the log is synced to disk, whatever the durability level.
flush.ms long 9223372036854775807 >=0 cluster-wide
    Time after which the log is synced to disk, whatever the durability level.
follower.replication.throttled.replicas list "" replicas cluster-wide
    Replicas whose followers are throttled, as partition:broker; * means all.
index.interval.bytes int 4096 >=0 cluster-wide
    Bytes of records between two entries of the offset index.
internal.segment.bytes int null - internal
    Segment size without a lower bound, for tests; wins over segment.bytes.
leader.replication.throttled.replicas list "" replicas cluster-wide
    Replicas whose leaders are throttled, as partition:broker; * means all.
local.retention.bytes long -2 >=-2 cluster-wide
    Bytes of tiered data that are also kept locally; -2 means retention.bytes. Accepted, not used.
local.retention.ms long -2 >=-2 cluster-wide
    Age up to which tiered data is also kept locally; -2 means retention.ms. Accepted, not used.
max.compaction.lag.ms long 9223372036854775807 >=1 cluster-wide
    Longest time a record may wait for compaction.
max.decompressed.message.bytes int 67108864 1..2147483639 cluster-wide
    Largest size of a batch after decompression; a larger one is refused.
max.message.bytes int 1048588 >=0 cluster-wide
    Largest size of a batch as it is stored; a larger one is refused.
message.timestamp.after.max.ms long 3600000 >=0 cluster-wide
    How far ahead of the broker's clock a record's timestamp may be.
message.timestamp.before.max.ms long 9223372036854775807 >=0 cluster-wide
    How far behind the broker's clock a record's timestamp may be.
message.timestamp.type string CreateTime one-of:CreateTime,LogAppendTime cluster-wide
    CreateTime keeps the producer's timestamps, LogAppendTime replaces them by the broker's time.
min.cleanable.dirty.ratio double 0.5 0..1 cluster-wide
    Share of a log that must be uncompacted before it is compacted again.
min.compaction.lag.ms long 0 >=0 cluster-wide
    Shortest time before compaction may remove a record.
min.insync.replicas int 1 >=1 cluster-wide
    Replicas that must be in sync for acks=all, at most the number of replicas.
preallocate boolean false - cluster-wide
    Reserve disk space for a whole segment when it is created.
remote.copy.lag.bytes long -1 >=-1 cluster-wide
    Lag in bytes after which a segment is copied to tiered storage. Accepted, not used.
remote.copy.lag.ms long 0 >=-1 cluster-wide
    Lag in milliseconds after which a segment is copied to tiered storage. Accepted, not used.
remote.log.copy.disable boolean false - cluster-wide
    Stop copying to tiered storage. Accepted, not used.
remote.log.delete.on.disable boolean false - cluster-wide
    Delete tiered data when tiered storage is turned off. Accepted, not used.
remote.storage.enable boolean false - cluster-wide
    Use tiered storage, which embedlog does not have: true is refused.
retention.bytes long -1 - cluster-wide
    Size above which a partition's oldest segments are removed; -1 means never.
retention.ms long 604800000 >=-1 cluster-wide
    Age above which segments are removed; -1 means never.
segment.bytes int 1073741824 >=1048576 cluster-wide
    Size at which a new segment is begun.
segment.index.bytes int 10485760 >=4 cluster-wide
    Largest size of a segment's offset index.
segment.jitter.ms long 0 >=0 cluster-wide
    Upper bound of a random time by which segment.ms is shortened, so that segments of different
    partitions do not all roll at the same time.
segment.ms long 604800000 >=1 cluster-wide
    Age at which a new segment is begun even if the old one is not full.
unclean.leader.election.enable boolean false - cluster-wide
    Allow a replica that is not in sync to become leader, although this loses records.
"""
