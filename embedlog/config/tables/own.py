"""Settings of brokers and of topics that only embedlog has.

The format is drawn in `embedlog.config.definitions`.
"""

TABLE = """
embedlog.durability string null one-of:memory,os,fsync internal
    What an acknowledged record survives: this process, its death, or loss of power.
"""
