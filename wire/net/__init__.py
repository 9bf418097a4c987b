"""Sockets: frames between clients and servers. Only this part of `wire` uses sockets and clocks.

`listener` is the server's side, `channels` the client's; both wait for sockets with a `poller`.
Nothing here decodes messages.
"""
