"""The only files of `wire` that touch sockets, clocks and threads: thin shells around them.

`poller` waits for sockets, `listener` serves Kafka's frames, `channels` carries a client's.
Nothing here knows what a frame says: both sides exchange whole frames, sizes stripped or added by
their caller, and the message codecs live in `wire`.
"""
