"""Orders come in over HTTP, and events go out. The events fill the view that is read over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

from .settings import Settings
from .view import OrderView, follow


class Item(BaseModel):
    """A line of an order."""

    sku: Annotated[str, Field(min_length=1, max_length=100)]
    quantity: Annotated[int, Field(ge=1, le=1_000_000)]
    cents: Annotated[int, Field(ge=0, le=10**12)]


class Order(BaseModel):
    """The body of `POST /orders`."""

    id: Annotated[str, Field(min_length=1, max_length=500)]
    customer: str = ""
    note: str | None = None
    items: Annotated[list[Item], Field(min_length=1)]


def create_app(settings: Settings) -> FastAPI:
    """Return the application; its lifespan starts and stops both clients."""
    view = OrderView()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # Without a group it reads all partitions, from the beginning.
        consumer = AIOKafkaConsumer(settings.topic, **settings.consumer)
        async with AIOKafkaProducer(**settings.producer, enable_idempotence=True) as producer:
            app.state.producer = producer
            async with follow(consumer, view):
                yield

    app = FastAPI(lifespan=lifespan)

    async def send(order_id: str, event: dict[str, object]) -> dict[str, int]:
        try:
            sent = await app.state.producer.send_and_wait(
                settings.topic,
                json.dumps(event, ensure_ascii=False).encode(),
                key=order_id.encode(),
                headers=[("type", str(event["type"]).encode())],
            )
        except KafkaError as error:
            raise HTTPException(503, f"the order was not taken: {error}") from None
        return {"partition": sent.partition, "offset": sent.offset}

    @app.post("/orders", status_code=202)
    async def place(order: Order) -> dict[str, int]:
        return await send(order.id, {"type": "placed", **order.model_dump()})

    @app.post("/orders/{order_id:path}/cancel", status_code=202)
    async def cancel(order_id: str) -> dict[str, int]:
        if order_id not in view.orders:
            raise HTTPException(404, f"no order {order_id!r}")
        return await send(order_id, {"type": "cancelled", "id": order_id})

    @app.get("/orders/{order_id:path}")
    async def read(order_id: str, partition: int = -1, offset: int = -1) -> dict[str, object]:
        """With a position, answer once the view has the event there."""
        if partition >= 0 and not await view.reached(partition, offset, settings.patience_s):
            raise HTTPException(504, f"the view has not reached {partition}@{offset}")
        if order_id not in view.orders:
            raise HTTPException(404, f"no order {order_id!r}")
        return view.orders[order_id]

    @app.get("/totals")
    async def totals() -> dict[str, int]:
        return {"orders": len(view.orders), "cents": view.cents, "skipped": view.skipped}

    return app
