"""Do something at the n-th opcode that this thread runs in chosen files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

STORAGE = ("/embedlog/storage/", "/embedlog/runtime/", "/embedlog/testing/sim_files")


class Countdown:
    """Calls `act` before the `left`-th opcode of frames whose file is below one of `roots`.

    Only frames that are entered after `start` count. `act` may raise, or kill the process.
    """

    def __init__(
        self, left: int, act: Callable[[], object], roots: tuple[str, ...] = STORAGE
    ) -> None:
        self.left = left
        self._act = act
        self._roots = roots
        self._is_ours: dict[str, bool] = {}

    def start(self) -> None:
        """Count from here on, in this thread."""
        sys.settrace(self._trace)

    def stop(self) -> None:
        """Count no more."""
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _argument: Any) -> Any:
        name = frame.f_code.co_filename
        is_ours = self._is_ours.get(name)
        if is_ours is None:
            # A lock that checks its order stands for one that is taken in a single step.
            is_ours = any(root in name for root in self._roots)
            is_ours = self._is_ours[name] = is_ours and not name.endswith("/lock_order.py")
        if not is_ours:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                self._act()
        return self._trace
