"""`ClusterController`: a test's handle of the controller."""

from __future__ import annotations

from embedlog.runtime.outer_call import outer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.cluster.controller_host import ControllerHost
    from embedlog.cluster.lone_controller import LoneController
    from embedlog.controller.controller import Controller


class ClusterController:
    """The controller. `Cluster.controller` returns the handle.

    While the controller is stopped, brokers append and replicate, but no leader or in-sync set
    changes. Requests that only the controller can serve wait. The only broker of a cluster contains
    the controller, which ends and starts with the broker.
    """

    __slots__ = ("_host", "_try_again")

    def __init__(
        self, host: ControllerHost | LoneController, try_again: Callable[[], None]
    ) -> None:
        """`try_again` delivers requests that waited while the controller was stopped."""
        self._host = host
        self._try_again = try_again

    @property
    def is_running(self) -> bool:
        """False while the controller is stopped."""
        return self._host.controller is not None

    @property
    def core(self) -> Controller | None:
        """The controller itself; None while it is stopped."""
        return self._host.controller

    @outer
    def stop(self) -> None:
        """Stop the controller. Raises IllegalState if it does not run."""
        self._host.stop()

    @outer
    def start(self) -> None:
        """Start the controller again, on its metadata log. Raises IllegalState if it runs."""
        self._host.start()
        self._try_again()

    def __repr__(self) -> str:
        return f"<ClusterController, {'running' if self.is_running else 'stopped'}>"
