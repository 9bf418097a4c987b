"""What a partition knows of its producers: idempotence, transactions, the last stable offset.

    the values            `entry`         the state of a log, changed by appends    `state`
    its file              `snapshot`      where appends and the state meet          `append`
    what is refused       `checks`
"""
