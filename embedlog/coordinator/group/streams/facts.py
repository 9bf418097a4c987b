"""What a streams group stores about itself, and what its members report."""

from __future__ import annotations

from collections.abc import Mapping

from embedlog.common import Value

NO_EPOCH = -1
"""Epoch of a topology that was never validated or described."""


class TaskOffsets(Value):
    """The offsets that a member last reported: how far its copies of states are, and could be."""

    offsets: Mapping[tuple[str, int], int] = {}
    """(subtopology, partition) -> sum of the offsets in the task's changelogs."""
    end_offsets: Mapping[tuple[str, int], int] = {}


NO_OFFSETS = TaskOffsets()


class Facts(Value):
    """The content of a record of type 17."""

    epoch: int
    metadata_hash: int = 0
    validated_topology_epoch: int = NO_EPOCH
    assignment_configs: tuple[tuple[str, str], ...] = ()
    stored_description_epoch: int = NO_EPOCH
    failed_description_epoch: int = NO_EPOCH
