"""Broker settings of listeners, requests, quotas and metrics.

The format is drawn in `embedlog.config.definitions`.
"""

TABLE = """
advertised.listeners list null - read-only
alter.log.dirs.replication.quota.window.num int 11 >=1 read-only
alter.log.dirs.replication.quota.window.size.seconds int 1 >=1 read-only
background.threads int 10 >=1 cluster-wide
client.quota.callback.class class null - read-only
connections.max.idle.ms long 600000 - read-only
controlled.shutdown.enable boolean true - read-only
early.start.listeners list null - read-only
fetch.max.bytes int 57671680 >=1024 read-only
inter.broker.listener.name string null - read-only
kafka.metrics.polling.interval.secs int 10 >=1 read-only
kafka.metrics.reporters list "" - read-only
listener.security.protocol.map string \
SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT - per-broker
listeners list PLAINTEXT://:9092 - per-broker
max.connection.creation.rate int 2147483647 >=0 cluster-wide
max.connections int 2147483647 >=0 cluster-wide
max.connections.per.ip int 2147483647 >=0 cluster-wide
max.connections.per.ip.overrides string "" - cluster-wide
max.incremental.fetch.session.cache.slots int 1000 >=0 read-only
max.request.partition.size.limit int 2000 >=1 read-only
metric.reporters list org.apache.kafka.common.metrics.JmxReporter - cluster-wide
metrics.num.samples int 2 >=1 read-only
metrics.recording.level string INFO - read-only
metrics.sample.window.ms long 30000 >=1 read-only
num.io.threads int 8 >=1 cluster-wide
num.network.threads int 3 >=1 cluster-wide
queued.max.request.bytes long -1 - read-only
queued.max.requests int 500 >=1 read-only
quota.window.num int 11 >=1 read-only
quota.window.size.seconds int 1 >=1 read-only
request.timeout.ms int 30000 - read-only
socket.connection.setup.timeout.max.ms long 30000 - read-only
socket.connection.setup.timeout.ms long 10000 - read-only
socket.listen.backlog.size int 50 >=1 read-only
socket.receive.buffer.bytes int 102400 - read-only
socket.request.max.bytes int 104857600 >=1 read-only
socket.send.buffer.bytes int 102400 - read-only
telemetry.max.bytes int 1048576 >=1 read-only
"""
