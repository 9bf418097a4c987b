"""Delayed operations: they wait for data, for replicas, or for their time to run out.

`timing_wheel` keeps millions of deadlines cheaply, `timer` runs due tasks, a `delayed_operation`
completes exactly once, by the first thread that can, and a `purgatory` finds the operations that
wait for a key. There are no threads: the timer is a duty of the runtime's scheduler.
"""
