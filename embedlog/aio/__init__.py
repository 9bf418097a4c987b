"""Producer, consumer and admin for asyncio: the clients of `embedlog`, awaited.

    from embedlog.aio import Consumer, Producer

    async with Producer("localhost:9092") as producer:
        await producer.send("events", b"value")

    async with Consumer("localhost:9092", group_id="readers") as consumer:
        await consumer.subscribe(["events"])
        async for record in consumer:
            ...

There is no second implementation: each client here has a synchronous one underneath, with the same
settings, the same calls and the same errors, for a cluster of this process or an address. What
differs is who waits:

    producer   Nobody: outcomes come by a callback. A record that finds its topic unknown or
               buffer.memory full waits in a thread that ends with the wait, and so does, in
               process, a record for the disk. Over the network the client's own thread sends.
    consumer   One thread of its own, started by the first call that may wait, ended by `close`.
               In process a poll without a group that finds records needs none.
    admin      One thread of its own.

Calls of one consumer or admin client are made one at a time, in the order in which they were asked
for; many tasks may share one. A cancelled call has no effect that is not whole: a poll hands
records to nobody and moves no position, a record that was sent stays sent.

A client belongs to the event loop that used it first. Nothing else in embedlog imports asyncio.
"""

from __future__ import annotations

from embedlog.aio.admin import Admin
from embedlog.aio.consumer import Consumer
from embedlog.aio.producer import Producer

__all__ = ["Admin", "Consumer", "Producer"]
