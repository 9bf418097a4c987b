"""Broker settings of listeners, requests, quotas and metrics."""

TABLE = """
advertised.listeners list null - read-only
    The address for clients, as PLAINTEXT://host:port. If it is not set, each client gets the
    address that it connected to.
alter.log.dirs.replication.quota.window.num int 11 >=1 read-only
    Samples kept for the quota of moves between directories. Accepted, not used.
alter.log.dirs.replication.quota.window.size.seconds int 1 >=1 read-only
    Span of one sample of the quota of moves between directories. Accepted, not used.
background.threads int 10 >=1 cluster-wide
    Threads for background work. Accepted, not used: duties run on the thread that drives the
    scheduler.
client.quota.callback.class class null - read-only
    Java class that decides quotas. Accepted, not used.
connections.max.idle.ms long 600000 - read-only
    Silence after which a connection is closed.
controlled.shutdown.enable boolean true - read-only
    Hand leadership over before stopping, if there are several brokers.
early.start.listeners list null - read-only
    Listeners that open before the broker is ready. Accepted, not used.
embedlog.api.versions list null - internal
    The only APIs and versions to serve, as API:first-last, for example Produce:3-9. Not set: all.
embedlog.max.fetch.session.cache.partitions int 100000 >=0 internal
    Partitions of all fetch sessions together, half a kilobyte each. Without room for a client's
    partitions the client is served without a session.
embedlog.max.fetch.session.partitions int 10000 >=0 internal
    Partitions of one fetch session. Clients with more are served without a session; a session that
    grows beyond the limit ends with FETCH_SESSION_ID_NOT_FOUND.
embedlog.max.request.elements int 50000 >=1 internal
    Elements in all arrays of a request together. The connection of a larger request is closed.
embedlog.max.response.bytes int 67108864 >=1024 internal
    Largest answer over a listener, except to Fetch (fetch.max.bytes) and Produce. A larger one
    becomes POLICY_VIOLATION, or closes the connection if the answer has no room for an error.
fetch.max.bytes int 57671680 >=1024 read-only
    Largest answer to a fetch, even if the client allows more. A larger first batch is still sent.
inter.broker.listener.name string null - read-only
    Listener that brokers use among themselves. Accepted, not used.
kafka.metrics.polling.interval.secs int 10 >=1 read-only
    How often metrics reporters are fed. Accepted, not used.
kafka.metrics.reporters list "" - read-only
    Java classes of metrics reporters. Accepted, not used.
listener.security.protocol.map string \
SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT - per-broker
    Security protocol of each listener name. Accepted, not used.
listeners list PLAINTEXT://:9092 - per-broker
    Addresses to listen at.
max.connection.creation.rate int 2147483647 >=0 cluster-wide
    New connections per second that a listener takes.
max.connections int 2147483647 >=0 cluster-wide
    Open connections that a broker takes.
max.connections.per.ip int 2147483647 >=0 cluster-wide
    Open connections that a broker takes from one address.
max.connections.per.ip.overrides string "" - cluster-wide
    Exceptions from max.connections.per.ip, as address:count. Accepted, not used.
max.incremental.fetch.session.cache.slots int 1000 >=0 read-only
    Fetch sessions that a broker keeps.
max.request.partition.size.limit int 2000 >=1 read-only
    Partitions in one page of DescribeTopicPartitions.
metric.reporters list org.apache.kafka.common.metrics.JmxReporter - cluster-wide
    Java classes of metrics reporters. Accepted, not used.
metrics.num.samples int 2 >=1 read-only
    Samples kept for each metric. Accepted, not used.
metrics.recording.level string INFO - read-only
    Least important level of metrics that is recorded. Accepted, not used.
metrics.sample.window.ms long 30000 >=1 read-only
    Span of one sample of a metric. Accepted, not used.
num.io.threads int 8 >=1 cluster-wide
    Threads that handle requests. Accepted, not used: one thread serves a listener.
num.network.threads int 3 >=1 cluster-wide
    Threads that read and write connections. Accepted, not used: one thread serves a listener.
queued.max.request.bytes long -1 - read-only
    Bytes of requests that may wait; -1 leaves it to the listener.
queued.max.requests int 500 >=1 read-only
    Requests that may wait for a thread. Accepted, not used: each connection has one in flight.
quota.window.num int 11 >=1 read-only
    Samples kept for client quotas. Accepted, not used.
quota.window.size.seconds int 1 >=1 read-only
    Span of one sample of a client quota. Accepted, not used.
request.timeout.ms int 30000 - read-only
    Longest wait for an answer to a request that this broker sends.
socket.connection.setup.timeout.max.ms long 30000 - read-only
    Longest wait for a connection that this broker opens.
socket.connection.setup.timeout.ms long 10000 - read-only
    First wait for a connection that this broker opens.
socket.listen.backlog.size int 50 >=1 read-only
    Connections the system queues before they are accepted. Accepted, not used.
socket.receive.buffer.bytes int 102400 - read-only
    Receive buffer of a connection; -1 leaves it to the system. Accepted, not used.
socket.request.max.bytes int 104857600 >=1 read-only
    Largest request; a larger one closes its connection.
socket.send.buffer.bytes int 102400 - read-only
    Send buffer of a connection; -1 leaves it to the system. Accepted, not used.
telemetry.max.bytes int 1048576 >=1 read-only
    Largest push of client metrics. Accepted, not used.
"""
