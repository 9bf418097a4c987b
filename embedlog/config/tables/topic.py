"""Settings of a topic.

The format is drawn in `embedlog.config.definitions`.
"""

TABLE = """
cleanup.policy list delete list-of:compact,delete cluster-wide
compression.gzip.level int -1 1..9|-1 cluster-wide
compression.lz4.level int 9 1..17 cluster-wide
compression.type string producer one-of:uncompressed,zstd,lz4,snappy,gzip,producer cluster-wide
compression.zstd.level int 3 -131072..22 cluster-wide
delete.retention.ms long 86400000 >=0 cluster-wide
errors.deadletterqueue.group.enable boolean false - cluster-wide
file.delete.delay.ms long 60000 >=0 cluster-wide
flush.messages long 9223372036854775807 >=1 cluster-wide
flush.ms long 9223372036854775807 >=0 cluster-wide
follower.replication.throttled.replicas list "" replicas cluster-wide
index.interval.bytes int 4096 >=0 cluster-wide
internal.segment.bytes int null - internal
leader.replication.throttled.replicas list "" replicas cluster-wide
local.retention.bytes long -2 >=-2 cluster-wide
local.retention.ms long -2 >=-2 cluster-wide
max.compaction.lag.ms long 9223372036854775807 >=1 cluster-wide
max.decompressed.message.bytes int 67108864 1..2147483639 cluster-wide
max.message.bytes int 1048588 >=0 cluster-wide
message.timestamp.after.max.ms long 3600000 >=0 cluster-wide
message.timestamp.before.max.ms long 9223372036854775807 >=0 cluster-wide
message.timestamp.type string CreateTime one-of:CreateTime,LogAppendTime cluster-wide
min.cleanable.dirty.ratio double 0.5 0..1 cluster-wide
min.compaction.lag.ms long 0 >=0 cluster-wide
min.insync.replicas int 1 >=1 cluster-wide
preallocate boolean false - cluster-wide
remote.copy.lag.bytes long -1 >=-1 cluster-wide
remote.copy.lag.ms long 0 >=-1 cluster-wide
remote.log.copy.disable boolean false - cluster-wide
remote.log.delete.on.disable boolean false - cluster-wide
remote.storage.enable boolean false - cluster-wide
retention.bytes long -1 - cluster-wide
retention.ms long 604800000 >=-1 cluster-wide
segment.bytes int 1073741824 >=1048576 cluster-wide
segment.index.bytes int 10485760 >=4 cluster-wide
segment.jitter.ms long 0 >=0 cluster-wide
segment.ms long 604800000 >=1 cluster-wide
unclean.leader.election.enable boolean false - cluster-wide
"""
