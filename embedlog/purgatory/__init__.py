"""Operations that wait: for data, for replicas, or for their time to run out.

`timing_wheel` keeps millions of deadlines cheaply, `timer` runs what is due, `delayed_operation`
is completed exactly once by whoever comes first, `purgatory` finds the operations that wait for a
key. No threads: the timer is a duty of the runtime's scheduler.
"""
