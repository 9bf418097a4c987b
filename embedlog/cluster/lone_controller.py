"""`LoneController`: the controller inside the only broker, for a test that stops it.

The controller ends and starts with its broker. While a test has stopped it, the broker serves
records, and requests that change topics or settings wait.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.errors import IllegalState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.cluster.running_broker import RunningBroker
    from embedlog.controller.controller import Controller


class LoneController:
    """See `cluster.handles.cluster_controller`. Every method may be called from any thread."""

    def __init__(
        self,
        node_id: int,
        running: Callable[[], RunningBroker | None],
        attach: Callable[[], None],
    ) -> None:
        """`running()` returns the broker while it runs; `attach` prepares the first fault."""
        self._node_id = node_id
        self._running = running
        self._attach = attach
        self.is_stopped = False
        """True between `stop` and `start`. The start of the broker ends it too."""

    @property
    def controller(self) -> Controller | None:
        """The controller; None while it or its broker is down."""
        running = self._running()
        return None if running is None or self.is_stopped else running.controller

    def running(self) -> Controller:
        """Return the controller. Raises NotController while it is stopped."""
        found = self.controller
        if found is None:
            raise errors.NotController("the controller does not run")
        return found

    def start(self) -> None:
        """Let the controller serve again."""
        if self._running() is None:
            raise IllegalState(f"the controller is part of broker {self._node_id}: start that")
        if not self.is_stopped:
            raise IllegalState("the controller runs already")
        self.is_stopped = False

    def stop(self) -> None:
        """Keep the controller from deciding anything until `start`."""
        self._attach()
        if self.controller is None:
            raise IllegalState("the controller does not run")
        self.is_stopped = True
