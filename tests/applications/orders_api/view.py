"""The read model: all orders, in memory, made anew from the topic at each start."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiokafka import AIOKafkaConsumer


class OrderView:
    """The orders by id. Each event may come more than once; events of other shapes are skipped."""

    def __init__(self) -> None:
        self.orders: dict[str, dict[str, Any]] = {}
        self.skipped = 0
        self._positions: dict[int, int] = {}
        self._moved = asyncio.Condition()

    @property
    def cents(self) -> int:
        """The worth of the orders that are not cancelled."""
        return sum(each["cents"] for each in self.orders.values() if each["state"] == "placed")

    async def take(self, record: Any) -> None:
        """Apply one record of the topic."""
        try:
            self._apply(record.key, record.value)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self.skipped += 1
        async with self._moved:
            self._positions[record.partition] = record.offset
            self._moved.notify_all()

    async def reached(self, partition: int, offset: int, timeout: float) -> bool:
        """Wait until the view has the event at a position; return whether it came in time."""
        async with self._moved:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._moved.wait_for(lambda: self._positions.get(partition, -1) >= offset)
            return self._positions.get(partition, -1) >= offset

    def _apply(self, key: bytes | None, value: bytes | None) -> None:
        if value is None:  # the order was erased
            self.orders.pop((key or b"").decode(), None)
            return
        event = json.loads(value)
        order_id = event["id"]
        if (key or b"").decode() != order_id:
            raise ValueError(f"the key {key!r} does not fit order {order_id!r}")
        match event["type"]:
            case "placed":
                items = event["items"]
                cents = sum(each["quantity"] * each["cents"] for each in items)
                if type(cents) is not int:
                    raise TypeError(f"{cents!r} is no whole number of cents")
                known = self.orders.get(order_id)
                if known is None:
                    self.orders[order_id] = {
                        "id": order_id,
                        "customer": event.get("customer", ""),
                        "note": event.get("note"),
                        "count": sum(each["quantity"] for each in items),
                        "cents": cents,
                        "state": "placed",
                    }
            case "cancelled":
                self.orders[order_id]["state"] = "cancelled"
            case other:
                raise ValueError(f"unknown event {other!r}")


@asynccontextmanager
async def follow(consumer: AIOKafkaConsumer, view: OrderView) -> AsyncIterator[None]:
    """Read all records of a consumer into `view`, until the block ends."""
    async with consumer:
        task = asyncio.create_task(_read(consumer, view))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _read(consumer: AIOKafkaConsumer, view: OrderView) -> None:
    async for record in consumer:
        await view.take(record)
