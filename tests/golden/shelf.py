"""A plugin that keeps descriptions of topologies in memory; names of groups make it fail.

`Shelf.java` is the same for Kafka's broker.
"""

from __future__ import annotations

from embedlog import errors
from wire.schemas.streams_group_topology_description_update import TopologyDescription


class Shelf:
    """See `embedlog/coordinator/group/streams/descriptions.py`."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], TopologyDescription] = {}

    def set_topology(self, group_id: str, epoch: int, description: TopologyDescription) -> None:
        if group_id.endswith("fails"):
            raise OSError("the disk is full")
        if group_id.endswith("refused"):
            raise errors.StreamsTopologyDescriptionUpdateFailed("too large")
        self._kept[group_id, epoch] = description

    def get_topology(self, group_id: str, epoch: int) -> TopologyDescription | None:
        if group_id.endswith("unreadable"):
            raise OSError("the disk is broken")
        return self._kept.get((group_id, epoch))

    def delete_topology(self, group_id: str) -> None:
        if group_id.endswith("kept"):
            raise OSError("the disk is read-only")
        for place in [place for place in self._kept if place[0] == group_id]:
            del self._kept[place]
