"""Wait for calls of other threads that have begun, without a mark that each call would pay for."""

from __future__ import annotations

import sys
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import CodeType, FrameType


class RunningCalls:
    """The calls of some functions in which other threads were when this object was made."""

    __slots__ = ("_frames",)

    def __init__(self, functions: Collection[CodeType]) -> None:
        self._frames = [frame for frame in _frames_elsewhere() if frame.f_code in functions]

    @property
    def are_running(self) -> bool:
        """True until all of them have returned."""
        if not self._frames:
            return False
        present = list(_frames_elsewhere())
        return any(frame is each for frame in self._frames for each in present)


def _frames_elsewhere() -> Iterator[FrameType]:
    """Yield every frame of every other thread."""
    me = get_ident()
    for thread, top in sys._current_frames().items():
        frame = None if thread == me else top
        while frame is not None:
            yield frame
            frame = frame.f_back
