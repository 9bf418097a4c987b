"""Log compaction: only the last record of every key stays (topics with cleanup.policy=compact).

choosing which log to clean, and when         `cleaner`
the broker's settings for it                  `settings`
the dirty part of a log                       `dirty_range`
one round of one log, in slices               `round`
the last offset of each key                   `offset_map`
which records of a batch stay                 `filter`
aborted batches and transaction markers       `transactions`
writing a new segment, and swapping it in     `output`
"""
