"""Settings of a group.

The format is drawn in `embedlog.config.definitions`.
"""

TABLE = """
consumer.assignment.interval.ms int 1000 >=0 cluster-wide
consumer.assignor.offload.enable boolean true - internal
consumer.heartbeat.interval.ms int 5000 >=1 cluster-wide
consumer.session.timeout.ms int 45000 >=1 cluster-wide
errors.deadletterqueue.copy.record.enable boolean false - cluster-wide
errors.deadletterqueue.topic.name string "" - cluster-wide
share.assignment.interval.ms int 1000 >=0 cluster-wide
share.assignor.offload.enable boolean true - internal
share.auto.offset.reset string latest offset-reset cluster-wide
share.delivery.count.limit int 5 >=2 cluster-wide
share.heartbeat.interval.ms int 5000 >=1 cluster-wide
share.isolation.level string read_uncommitted one-of:read_committed,read_uncommitted cluster-wide
share.partition.max.record.locks int 2000 >=100 cluster-wide
share.record.lock.duration.ms int 30000 >=1000 cluster-wide
share.renew.acknowledge.enable boolean true - cluster-wide
share.session.timeout.ms int 45000 >=1 cluster-wide
streams.acceptable.recovery.lag long 10000 >=0 internal
streams.assignment.interval.ms int 1000 >=0 cluster-wide
streams.assignor.name string null - cluster-wide
streams.assignor.offload.enable boolean true - internal
streams.heartbeat.interval.ms int 5000 >=1 cluster-wide
streams.initial.rebalance.delay.ms int 3000 >=0 cluster-wide
streams.num.standby.replicas int 0 >=0 cluster-wide
streams.num.warmup.replicas int 2 >=0 internal
streams.rack.aware.assignment.tags list "" - cluster-wide
streams.session.timeout.ms int 45000 >=1 cluster-wide
streams.task.offset.interval.ms int 60000 >=1 internal
"""
