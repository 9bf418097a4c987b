"""The only files of `wire` that touch sockets, clocks and threads.

`poller` waits for sockets, `listener` serves Kafka's frames, `channels` carries a client's frames.
Nothing here decodes messages: the message codecs live in `wire`.
"""
