"""`Hold`: requests that wait until the test lets them go."""

from __future__ import annotations

from embedlog.testing.faults.rule import FaultRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.testing.faults.waiting import HeldRequest, Waiting


class Hold(FaultRule):
    """A rule that `Kafka.hold` or `Kafka.blackhole` has made.

    with kafka.hold("Fetch", client_id="c") as hold:
        hold.wait()
        kafka.broker(1).stop()
        hold.release()

    At its end, the held requests go on.
    """

    def __init__(self, waiting: Waiting, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._waiting = waiting

    @property
    def held(self) -> list[HeldRequest]:
        """The requests that wait, the oldest first; release them one by one, in any order."""
        return self._waiting.held_by(self)

    def release(self) -> None:
        """Let all held requests go on, and hold no more."""
        self.remove()
