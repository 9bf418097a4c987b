"""What coordinators see of their broker; they never import it."""

from __future__ import annotations

from embedlog.broker import dispatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.controller.metadata import MetadataImage
    from embedlog.pending import Pending


class CoordinatorHost:
    """One broker, as `coordinator.group.group_coordinator.Broker` describes it."""

    __slots__ = ("_broker", "config", "replica_manager", "runtime")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.runtime = broker.runtime
        self.config = broker.config
        self.replica_manager = broker.replica_manager

    def metadata(self) -> MetadataImage:
        """The present state of the cluster."""
        return self._broker.controller.image

    def partitions_with_log(self, topic: str) -> Iterable[int]:
        """The partitions of an existing topic that have a log here, opened or not."""
        image = self._broker.controller.image.topics_by_name.get(topic)
        count = 0 if image is None else len(image.partitions)
        found = self._broker.log_manager.partitions()
        return [index for name, index in found if name == topic and index < count]

    def settle(self, context: RequestContext, request: Any, pending: Pending[Any]) -> Any:
        """The response in `pending`, or a pending of it; failures become error responses."""
        return dispatch.settle(context, request, pending)
