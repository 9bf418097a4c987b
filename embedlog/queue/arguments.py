"""The keyword arguments of `Cluster.queue`, `Queue.put` and `Queue.put_many`, for type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from embedlog.client.producer.transaction import Transaction
    from embedlog.queue.values import Serializer


class QueueArguments(TypedDict, total=False):
    """The options of `Cluster.queue`, which explains them."""

    serializer: Serializer | None
    priorities: int
    ordered: bool
    retries: int
    lock: float | None
    partitions: int
    prefetch: int


class PutManyArguments(TypedDict, total=False):
    """The options of `Queue.put_many`."""

    key: str | bytes | None
    priority: int
    headers: Mapping[str, str | bytes | None] | None


class PutArguments(PutManyArguments, total=False):
    """The options of `Queue.put`, which explains them."""

    delay: float | timedelta | None
    at: datetime | float | None
    cron: str | None
    id: str | None
    dedupe: str | None
    window: float | timedelta
    reply: bool
    transaction: Transaction | None
