"""`ClusterController`: the controller of several brokers in the hand of a test."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from embedlog.cluster.controller_host import ControllerHost
    from embedlog.controller.controller import Controller

    class Brokers(Protocol):
        """All brokers of the cluster, as this file knows them."""

        host: ControllerHost

        def try_again(self) -> None:
            """What waited for the controller may go on."""


class ClusterController:
    """The controller; `Cluster.controller` gives it.

    While it is stopped brokers append and replicate, and no leader or in-sync set changes; what
    only the controller can do waits.
    """

    __slots__ = ("_brokers",)

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    @property
    def is_running(self) -> bool:
        """Does it run?"""
        return self._brokers.host.controller is not None

    @property
    def core(self) -> Controller | None:
        """The controller itself; None while it does not run."""
        return self._brokers.host.controller

    def stop(self) -> None:
        """Stop it. Raises IllegalState if it does not run."""
        self._brokers.host.stop()

    def start(self) -> None:
        """Start it again, on its metadata log. Raises IllegalState if it runs."""
        self._brokers.host.start()
        self._brokers.try_again()

    def __repr__(self) -> str:
        return f"<ClusterController, {'running' if self.is_running else 'stopped'}>"
