"""Coordinators of a broker of several: they are where the partitions of their topics are led."""

from __future__ import annotations

from embedlog.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from embedlog.controller.metadata import MetadataDelta, MetadataImage
    from embedlog.coordinator.group.group_coordinator import GroupCoordinator
    from embedlog.coordinator.runtime import CoordinatorRuntime
    from embedlog.coordinator.transaction.transaction_coordinator import TransactionCoordinator

    class Broker(Protocol):
        """The broker, as this file knows it."""

        @property
        def node_id(self) -> int: ...
        @property
        def group_coordinator(self) -> GroupCoordinator: ...
        @property
        def transaction_coordinator(self) -> TransactionCoordinator: ...


_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)


def open_coordinators(broker: Broker, image: MetadataImage, *, is_opening: bool) -> None:
    """Load what the broker leads. `is_opening`: the whole cluster is being opened."""
    for topic in _TOPICS:
        found = image.topics_by_name.get(topic)
        partitions = () if found is None else found.partitions
        led = [each.partition for each in partitions if each.leader == broker.node_id]
        coordinator = _coordinator_of(broker, topic)
        coordinator.first_loads.expect(led if is_opening else ())
        coordinator.leader_changes.note(led)


def note_leaders(broker: Broker, delta: MetadataDelta) -> None:
    """Let coordinators begin and end where their partitions are led after a change."""
    moved: dict[str, list[int]] = {}
    for topic, index in delta.partitions_changed:
        moved.setdefault(topic, []).append(index)
    for topic in _TOPICS:
        if topic in moved:
            _coordinator_of(broker, topic).leader_changes.note(moved[topic])


def _coordinator_of(broker: Broker, topic: str) -> CoordinatorRuntime[Any]:
    if topic == OFFSETS_TOPIC:
        return broker.group_coordinator.runtime
    return broker.transaction_coordinator.runtime
