"""The producers of a partition: idempotence, transactions, the last stable offset.

values                              `entry`
the state, changed by appends       `state`
its file                            `snapshot`
use of the state by appends         `append`
refused batches and markers         `checks`
"""
