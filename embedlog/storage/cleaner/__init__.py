"""Log compaction: of every key the last record stays (topics with cleanup.policy=compact).

    what is dirty enough     `dirty_range`    the last offset of each key    `offset_map`
    one round, in slices     `round`          what stays of a batch          `filter`
    transactions meanwhile   `transactions`   the new segment                `output`
    which log, and when      `cleaner`        what it reads of settings      `settings`
"""
