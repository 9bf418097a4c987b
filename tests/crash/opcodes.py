"""Do something at the n-th opcode that this thread runs in chosen files.

The interpreter looks for signals, and so raises KeyboardInterrupt, not between any two opcodes: it
does so at the begin of a function, where a loop jumps back, and once a call has returned. A `with`
relies on that: between its body and its `__exit__` there is no such place.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

STORAGE = ("/embedlog/storage/", "/embedlog/runtime/", "/embedlog/testing/sim_files")
_LOCKS = "/lock_order.py"


class Countdown:
    """Calls `act` before the `left`-th opcode of frames whose file is below one of `roots`.

    Only frames that are entered after `start` count. `act` may raise, or kill the process. With
    `interrupts_only`, opcodes are those where a KeyboardInterrupt may come.
    """

    def __init__(
        self,
        left: int,
        act: Callable[[], object],
        roots: tuple[str, ...] = STORAGE,
        *,
        interrupts_only: bool = False,
    ) -> None:
        self.left = left
        self._act = act
        self._roots = roots
        self._is_ours: dict[str, bool] = {}
        self._interrupts_only = interrupts_only
        # CPython 3.11 makes a frame before it calls the function that it has already looked up. A
        # collection then may run a finalizer, which counts too: `act` there ends the tracing, and
        # what is called next would be freed if nothing here kept it.
        self._tracer = self._trace

    def start(self) -> None:
        """Count from here on, in this thread."""
        sys.settrace(self._tracer)

    def stop(self) -> None:
        """Count no more."""
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if self.left <= 0:
            return None  # a finalizer was faster, see above
        name = frame.f_code.co_filename
        is_ours = self._is_ours.get(name)
        if is_ours is None:
            # A lock that checks its order stands for one that is taken in a single step.
            is_ours = any(root in name for root in self._roots) and not name.endswith(_LOCKS)
            self._is_ours[name] = is_ours
        if not is_ours:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            if self._interrupts_only and frame.f_lasti not in interruptible(frame.f_code):
                return self._tracer
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                self._act()
        return self._tracer


_CALLS = ("CALL", "CALL_FUNCTION_EX", "CALL_KW")
_interruptible: dict[CodeType, frozenset[int]] = {}


def interruptible(code: CodeType) -> frozenset[int]:
    """Where in `code` an exception that is raised is one that a signal's handler might raise."""
    found = _interruptible.get(code)
    if found is None:
        found = _interruptible[code] = frozenset(_offsets(code))
    return found


def _offsets(code: CodeType) -> list[int]:
    handlers = dis._parse_exception_table(code)  # type: ignore[attr-defined]

    def handler(offset: int) -> int:
        return next((each.target for each in handlers if each.start <= offset < each.end), -1)

    offsets = []
    former = None
    for each in dis.get_instructions(code):
        if (
            each.opname == "RESUME"
            or each.opname.startswith("JUMP_BACKWARD")
            or (
                former is not None
                and former.opname in _CALLS
                and not each.is_jump_target
                # As if the call had raised: only where the same handler would get it.
                and handler(former.offset) == handler(each.offset)
            )
        ):
            offsets.append(each.offset)
        former = each
    return offsets
