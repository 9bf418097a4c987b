"""Settings of brokers and of topics that only embedlog has."""

TABLE = """
embedlog.durability string null one-of:memory,os,fsync internal
    How long an acknowledged record lives: as long as the process (memory), beyond its death (os),
    or beyond a loss of power (fsync).
embedlog.max.batch.headers int null >=1 internal
    Headers of all records of a batch together. A batch with more is MESSAGE_TOO_LARGE, and clients
    split it. Unset it is a tenth of max.message.bytes.
embedlog.max.compressed.records int null >=1 internal
    Records of a compressed batch. A batch with more is MESSAGE_TOO_LARGE, and clients split it.
    Unset it is a tenth of max.message.bytes, the most that fit into a plain batch.
embedlog.retention.archived boolean false - internal
    Retention by size and age waits for the archives of the topic: `embedlog pipeline archive`.
"""
