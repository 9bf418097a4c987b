"""Act at the n-th opcode that this thread runs in chosen files.

The interpreter checks for signals, and so raises KeyboardInterrupt, only at the begin of a
function, at a jump back of a loop, and after a call has returned. `with` relies on that: between
its body and its `__exit__` there is no such place.
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
    `interrupts_only`, only places of a possible KeyboardInterrupt count.
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
        # CPython 3.11 looks the trace function up, makes a frame, and then calls the function. A
        # garbage collection in between may run a finalizer, in which `act` ends the tracing;
        # without this reference the trace function would be freed before its call.
        self._tracer = self._trace

    def start(self) -> None:
        """Count opcodes of this thread from here on."""
        sys.settrace(self._tracer)

    def stop(self) -> None:
        """Stop counting."""
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if self.left <= 0:
            return None  # a finalizer has used up the count, see above
        name = frame.f_code.co_filename
        is_ours = self._is_ours.get(name)
        if is_ours is None:
            # An order-checking lock stands for a lock that is taken in a single step.
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
    """Return the offsets in `code` at which a signal's handler may raise an exception."""
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
                # The exception would come from the call: only if the same handler would get it.
                and handler(former.offset) == handler(each.offset)
            )
        ):
            offsets.append(each.offset)
        former = each
    return offsets
