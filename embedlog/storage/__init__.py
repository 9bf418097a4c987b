"""The log on disk: segments, indexes, producer state, recovery, retention, in Kafka's formats.

From above only `DataDirectories`, `LogManager`, `Log`, `LogConfig` and the values they return are
used. Nothing in here knows the protocol's messages: from `wire` it takes the record batch and
nothing else.
"""
