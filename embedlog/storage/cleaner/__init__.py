"""Log compaction: the last record of every key stays (topics with cleanup.policy=compact).

the choice of a log, the time      `cleaner`, by a broker's `settings`
the dirty part of a log            `dirty_range`
one round, in slices               `round`
the last offset of each key        `offset_map`
the rules for a batch              `filter`
aborted batches and markers        `transactions`
the new segment, and its swap      `output`
"""
