"""`ConsumerRebalanceListener`: the user's callbacks for assigned, revoked and lost partitions."""

from __future__ import annotations

from embedlog.client import arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.common import TopicPartition

LISTENER_METHODS = ("on_partitions_revoked", "on_partitions_assigned", "on_partitions_lost")


class ConsumerRebalanceListener:
    """Override the methods you need. They run inside calls of the consumer, in the caller's thread.

    They may use the consumer: to commit, seek or read positions. The consumer sends no heartbeat
    meanwhile, so return well before session.timeout.ms. An exception does not stop the rebalance:
    when it is over, the consumer's call raises the first exception, with a note that names the
    method and the partitions.

    >>> class Report(embedlog.ConsumerRebalanceListener):
    ...     def on_partitions_assigned(self, partitions):
    ...         print("reading", *partitions)
    >>> Report().on_partitions_assigned([])
    reading
    """

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Called before the consumer gives up `partitions`: the last moment to commit positions."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Called after the consumer got `partitions`, maybe none, in addition to its others.

        It has not read from them yet.
        """

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Called when another member may own `partitions` already: a commit for them would fail.

        The default calls `on_partitions_revoked`.
        """
        self.on_partitions_revoked(partitions)


def check_listener(listener: Any) -> None:
    """Raise TypeError unless `listener` is None or an object with one of the methods."""
    if listener is None:
        return
    is_class = isinstance(listener, type)
    if is_class or not any(hasattr(listener, name) for name in LISTENER_METHODS):
        kind = "a class" if is_class else type(listener).__name__
        raise arguments.WrongType(
            f"subscribe(listener={arguments.shown(listener)}): expected an object with methods as "
            f"ConsumerRebalanceListener has, got {kind}"
        )
