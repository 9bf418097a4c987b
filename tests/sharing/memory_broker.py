"""Brokers whose share coordinator is in memory, and fails or waits on request."""

from __future__ import annotations

from typing import Any

from tests.sharing.memory_state import MemoryState


def give_state(core: Any, state: MemoryState | None = None) -> MemoryState:
    """Let a broker ask a share coordinator in memory, by default a new one; return that."""
    state = MemoryState() if state is None else state
    core._on_demand.share_state = state
    return state
