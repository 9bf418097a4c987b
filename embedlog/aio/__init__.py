"""Producer, consumers and admin client for asyncio: the clients of `embedlog` as coroutines.

    from embedlog.aio import Consumer, Producer

    async with Producer("localhost:9092") as producer:
        await producer.send("events", b"value")

    async with Consumer("localhost:9092", group_id="readers") as consumer:
        await consumer.subscribe(["events"])
        async for record in consumer:
            ...

Each client here wraps a synchronous client, with the same settings, calls and errors. It connects
to a cluster of this process or to an address. These threads do the waiting:

    producer   usually none, because outcomes arrive by callback. A record waits in a temporary
               thread if its topic is unknown or buffer.memory is full; in process also if it must
               wait for the disk. Over a network the client's own thread sends.
    consumer   one thread: the first call that may wait starts it, `close` ends it. In process and
               without a group, a poll that finds records needs no thread.
    share      one thread
    admin      one thread

A consumer, a share consumer or an admin client makes one call at a time, in the order in which
tasks make them; many tasks may share it. Cancelling leaves no half-done call: a cancelled poll
returns no records and moves no position; a record that was sent stays sent.

A client belongs to the event loop that used it first. No other part of embedlog imports asyncio.
"""

from __future__ import annotations

from embedlog.aio.admin import Admin
from embedlog.aio.consumer import Consumer
from embedlog.aio.producer import Producer
from embedlog.aio.share_consumer import ShareConsumer

__all__ = ["Admin", "Consumer", "Producer", "ShareConsumer"]
