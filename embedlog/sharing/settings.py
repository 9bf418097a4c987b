"""The settings of a share group that concern deliveries, as they are in force at one moment."""

from __future__ import annotations

from embedlog.common import Value
from embedlog.config.resources import group_value
from embedlog.sharing.delivery import Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.config import BrokerConfig


class ShareSettings(Value):
    """Group settings, or the broker settings that are their defaults."""

    lock_duration_ms: int
    delivery_limit: int
    lock_count_max: int
    offset_reset: str
    is_committed_only: bool
    """share.isolation.level is read_committed."""
    may_renew: bool
    dead_letter_topic: str
    """Empty if the group has none, or the cluster does not support them yet."""
    copies_records: bool
    is_ordered: bool
    """The records of one key are delivered one after another."""

    @property
    def rules(self) -> Rules:
        return Rules(self.delivery_limit, buries=bool(self.dead_letter_topic))


def settings_of(
    texts: Mapping[str, str], broker: BrokerConfig, *, has_dead_letters: bool
) -> ShareSettings:
    """Return the settings of a group; `texts` are its own settings by name."""

    def value(name: str) -> object:
        return group_value(name, texts, broker)

    def number(name: str) -> int:
        found = value(name)
        assert isinstance(found, int), (name, found)
        return found

    topic = value("errors.deadletterqueue.topic.name")
    return ShareSettings(
        lock_duration_ms=number("share.record.lock.duration.ms"),
        delivery_limit=number("share.delivery.count.limit"),
        lock_count_max=number("share.partition.max.record.locks"),
        offset_reset=str(value("share.auto.offset.reset")),
        is_committed_only=value("share.isolation.level") == "read_committed",
        may_renew=bool(value("share.renew.acknowledge.enable")),
        dead_letter_topic=str(topic or "") if has_dead_letters else "",
        copies_records=bool(value("errors.deadletterqueue.copy.record.enable")),
        is_ordered=bool(value("embedlog.share.key.order")),
    )
