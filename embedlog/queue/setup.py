"""Creating a queue: its topics, and the settings of its group."""

from __future__ import annotations

from embedlog.client.admin.new_topics import NewTopic
from embedlog.client.admin.results import AlterOperation, ConfigResource
from embedlog.errors import ConfigError, InvalidConfig, TopicAlreadyExists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Any

    from embedlog.client.admin.admin import Admin
    from embedlog.queue.names import QueueNames

_FOREVER = {"retention.ms": -1, "retention.bytes": -1}
_DELAYED = {
    "cleanup.policy": "compact",
    # The timestamp of a delayed job is its due time, which may be years ahead.
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": 2**63 - 1,
    "message.timestamp.before.max.ms": 2**63 - 1,
}
_DEAD = {**_FOREVER, "errors.deadletterqueue.group.enable": "true"}
_REPLIES = {"retention.ms": 86_400_000}

_LOCK = "share.record.lock.duration.ms"
_KEY_ORDER = "embedlog.share.key.order"
DELIVERIES_MAX = 10
"""Deliveries of a record; the last one only gives the job up. Brokers allow 10 by default."""
_GROUP = {
    "share.auto.offset.reset": "earliest",
    "share.isolation.level": "read_committed",
    # Crashes of workers count against this limit; failures against the queue's `retries`.
    "share.delivery.count.limit": DELIVERIES_MAX,
    "errors.deadletterqueue.copy.record.enable": "true",
}


def create_missing(
    admin: Admin,
    names: QueueNames,
    known: Container[str],
    *,
    partitions: int,
    lock_ms: int | None,
    is_ordered: bool,
) -> None:
    """Create the queue unless it exists; change only the settings that are given.

    `known` are the present topics.

    Raises:
        ConfigError: the brokers do not allow the lock, or cannot keep the order of keys.
        KafkaError: the cluster refuses a topic or a setting.
    """
    # The settings come first: a process that dies in between leaves no queue without them.
    settings: dict[str, Any] = {}
    if names.dead not in known:
        settings = {**_GROUP, "errors.deadletterqueue.topic.name": names.dead}
    if lock_ms is not None:
        settings[_LOCK] = lock_ms
    if is_ordered:
        settings[_KEY_ORDER] = "true"
    if settings:
        _configure(admin, names.name, settings)
    wanted = [NewTopic(name, partitions, configs=_FOREVER) for name in names.levels]
    wanted.append(NewTopic(names.delayed, 1, configs=_DELAYED))
    wanted.append(NewTopic(names.replies, 1, configs=_REPLIES))
    wanted.append(NewTopic(names.dead, 1, configs=_DEAD))
    missing = [topic for topic in wanted if topic.name not in known]
    if missing:
        made = admin.create_topics(missing)
        for failure in made.failures.values():
            if not isinstance(failure, TopicAlreadyExists):  # another process was faster
                raise failure


def keeps_order(admin: Admin, group: str) -> bool:
    """Return whether the group works on the jobs of a key one after another."""
    resource = ConfigResource("group", group)
    found = admin.describe_configs([resource], names=[_KEY_ORDER]).check()[resource]
    return _KEY_ORDER in found and found[_KEY_ORDER].value == "true"


def _configure(admin: Admin, group: str, settings: dict[str, Any]) -> None:
    changes = {name: (AlterOperation.SET, value) for name, value in settings.items()}
    try:
        admin.incremental_alter_configs({ConfigResource("group", group): changes}).check()
    except InvalidConfig as error:
        text = str(error)
        if _KEY_ORDER in settings and _KEY_ORDER in text:
            raise ConfigError(
                f"queue({group!r}, ordered=True): only brokers of embedlog keep the order of keys"
            ) from None
        if _LOCK in settings and _LOCK in text:
            raise ConfigError(
                f"queue({group!r}, lock={settings[_LOCK] / 1000:g}): {text}"
            ) from None
        raise
