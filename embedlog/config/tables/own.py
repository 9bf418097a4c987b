"""Settings of brokers and of topics that only embedlog has.

The format is drawn in `embedlog.config.definitions`.
"""

TABLE = """
embedlog.durability string null one-of:memory,os,fsync internal
    What an acknowledged record survives: this process, its death, or loss of power.
embedlog.max.batch.headers int null >=1 internal
    Headers that the records of a batch may have together; more are MESSAGE_TOO_LARGE, and clients
    split the batch. Unset it is a tenth of max.message.bytes.
embedlog.max.compressed.records int null >=1 internal
    Records that a compressed batch may have; one with more is MESSAGE_TOO_LARGE, and clients split
    it. Unset it is a tenth of max.message.bytes: a plain batch holds so many at most.
embedlog.retention.archived boolean false - internal
    Retention by size and age waits for the archives of the topic: `embedlog pipeline archive`.
"""
