"""`Driver`: which thread makes the passes of a producer, and how other threads wait for them.

    InProcessDriver    in process          the caller makes the pass; waiting, it drives the broker
    PollingDriver      TCP, no linger      the caller makes the pass; one waiting caller polls
    ThreadedDriver     TCP, with linger    a thread of the producer makes the passes

A pass never waits. With the first two drivers, `producer.passes` makes the passes that no caller
makes.
"""
