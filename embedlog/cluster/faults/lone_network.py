"""`LoneNetwork`: the network of a cluster of one broker: the link to its own controller."""

from __future__ import annotations

from embedlog.cluster.faults.network import CONTROLLER, ClusterNetwork
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from embedlog.runtime import Runtime


class LoneNetwork(ClusterNetwork):
    """Cuts the only broker off its controller. No other link exists."""

    def __init__(self, runtime: Runtime, node_id: int, attach: Callable[[], None]) -> None:
        """`attach` prepares the first fault."""
        super().__init__(runtime)
        self._node_id = node_id
        self._attach = attach

    def split(self, *groups: Collection[int]) -> None:
        for group in groups:
            for each in group:
                self._check(each)
        super().split(*groups)

    def cut(self, source: int, target: int) -> None:
        """Cut the link between the broker and its controller, `CONTROLLER`, in one direction.

        Raises:
            ConfigError: there is no such link.
        """
        self._check_link(source, target)
        self._attach()
        super().cut(source, target)

    def delay(self, source: int, target: int, delay_ms: int) -> None:
        """Refuse a delay: nothing travels between the only broker and its controller.

        Raises:
            ConfigError: `delay_ms` is not 0, or there is no such link.
        """
        self._check_link(source, target)
        if delay_ms:
            raise ConfigError(
                f"no message can be late between broker {self._node_id} and its own controller: "
                f"disk.slow makes the broker's answers late, cut and pause hold them back"
            )

    def _check_link(self, source: int, target: int) -> None:
        for each in (source, target):
            self._check(each)
        if source == target:
            raise ConfigError(f"broker {source} has no link to itself")

    def _check(self, node_id: int) -> None:
        if node_id not in (self._node_id, CONTROLLER):
            raise ConfigError(
                f"there is no broker {node_id}, only {self._node_id}: for links between brokers "
                "open with brokers=2 or more"
            )
