"""Settings that a topic has under the same name as its broker, which gives the default.

All of them are embedlog's own.
"""

TABLE = """
embedlog.durability string null one-of:memory,os,fsync internal
    Accidents that an acknowledged record survives: none (memory), the death of the process (os), or
    also a loss of power (fsync).
embedlog.max.batch.headers int null >=1 internal
    Headers of all records of a batch together. A batch with more is MESSAGE_TOO_LARGE, and clients
    split it. The default is a tenth of max.message.bytes.
embedlog.max.compressed.records int null >=1 internal
    Records of a compressed batch. A batch with more is MESSAGE_TOO_LARGE, and clients split it. The
    default is a tenth of max.message.bytes, because no more records fit into a plain batch.
embedlog.retention.archived boolean false - internal
    Keep segments until `embedlog pipeline archive` has archived them, even if their size or age
    would allow to delete them.
"""
