"""`Neighbours`: one broker's way to the other brokers and to the controller.

It implements `broker.peers.Peers` and `replication.membership.Membership`.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.context import RequestContext
from embedlog.cluster.faults.network import CONTROLLER
from embedlog.replication.leader_and_isr import LeaderAndIsr
from wire.api_keys import ApiKey
from wire.registry import stable_versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from embedlog.cluster.presence import Presence
    from embedlog.cluster.shared import Shared
    from embedlog.common import TopicPartition
    from embedlog.controller.controller import Controller
    from embedlog.controller.metadata import BrokerImage
    from embedlog.runtime.pending import Pending
    from wire.schema import Message, R, Request

    T = TypeVar("T")

_TIMEOUT_MS = 30_000
_FAREWELL_MS = 500
"""Metadata still names a broker for this long after the broker left. If it vanished at once,
librdkafka would not find the new leaders and would wait a second."""


class Neighbours:
    """One broker's way to its cluster. Every method may be called from any thread."""

    def __init__(self, shared: Shared, own: Presence) -> None:
        self._own = own
        self._others = shared.presences
        self._host = shared.host
        self._clock = shared.runtime.clock
        self._network = shared.network
        self.node_id = own.node_id
        self.config = own.config
        self.broker_epoch = -1
        """Epoch of this broker's present registration."""

    # The controller

    def reaches_controller(self) -> bool:
        network = self._network
        return self._host.controller is not None and not (
            network.is_cut(self.node_id, CONTROLLER) or network.is_cut(CONTROLLER, self.node_id)
        )

    def ask_controller(self, call: Callable[[Controller], T]) -> Pending[T]:
        def perform() -> T:
            controller = self._host.controller
            if controller is None:
                raise errors.Network("the controller does not run")
            return call(controller)

        return self._network.call(self.node_id, CONTROLLER, perform, timeout_ms=_TIMEOUT_MS)

    def give_up(self) -> None:
        self._own.give_up()

    # Other brokers

    def send(self, node_id: int, request: Request[R], *, timeout_ms: int) -> Pending[R]:
        target = self._others.get(node_id)
        context = _newest_context(type(request))

        def perform() -> R | Pending[R]:
            if target is None:
                raise errors.Network(f"there is no broker {node_id}")
            return target.door.handle(context, request)

        answer = self._network.call(self.node_id, node_id, perform, timeout_ms=timeout_ms)
        slow_disk = self._own.door.slow_disk
        if slow_disk.is_slow and context.api_key == ApiKey.FETCH:
            return slow_disk.written(answer)
        return answer

    def address(self, node_id: int, context: RequestContext) -> tuple[str, int] | None:
        target = self._others.get(node_id)
        if target is None or target.is_hidden:
            return None
        if context.connection is None:
            return context.advertised_host, context.advertised_port
        port, advertised = target.listening.port, target.listening.advertised
        if port is not None and advertised is not None:
            return advertised[0] or context.advertised_host, advertised[1]
        if port is None and self._own.listening.port is None:
            # Without listeners the client uses `testing.LoopbackChannels`, which ignore addresses.
            port = context.advertised_port
        return None if port is None else (context.advertised_host, port)

    def has_just_left(self, node_id: int) -> bool:
        target = self._others.get(node_id)
        if target is None or target.left_ms is None:
            return False
        return self._clock.monotonic_ms() - target.left_ms < _FAREWELL_MS

    def let_follow(self, topic_partition: TopicPartition, replicas: Sequence[int]) -> None:
        for node_id in replicas:
            target = self._others.get(node_id)
            running = None if target is None else target.running
            if running is not None and node_id != self.node_id:
                running.core.publisher.want(topic_partition)

    def alter_partition(
        self,
        topic_id: bytes,
        partition: int,
        *,
        leader_epoch: int,
        partition_epoch: int,
        isr: Sequence[tuple[int, int]],
        is_recovering: bool,
    ) -> Pending[LeaderAndIsr]:
        node_id, epoch = self.node_id, self.broker_epoch

        def call(controller: Controller) -> LeaderAndIsr:
            changed = controller.partitions.alter(
                node_id,
                epoch,
                topic_id,
                partition,
                leader_epoch=leader_epoch,
                partition_epoch=partition_epoch,
                isr=isr,
                is_recovering=is_recovering,
            )
            return LeaderAndIsr(
                leader=changed.leader,
                leader_epoch=changed.leader_epoch,
                partition_epoch=changed.partition_epoch,
                replicas=changed.replicas,
                isr=changed.isr,
                min_insync_replicas=-1,
                is_recovering=changed.is_recovering,
            )

        return self.ask_controller(call)

    def epoch_of(self, node_id: int) -> int:
        known = self._known(node_id)
        return -1 if known is None else known.epoch

    def is_eligible(self, node_id: int) -> bool:
        known = self._known(node_id)
        return known is not None and not (known.is_fenced or known.in_controlled_shutdown)

    def rack_of(self, node_id: int) -> str | None:
        known = self._known(node_id)
        return None if known is None else known.rack

    def _known(self, node_id: int) -> BrokerImage | None:
        running = self._own.running
        return None if running is None else running.core.image.brokers.get(node_id)


def _newest_context(kind: type[Message]) -> RequestContext:
    """Context of a request inside the process, at the newest version that brokers serve."""
    declared = kind.__declaration__
    assert declared is not None, kind
    assert declared.api is not None, kind
    return RequestContext(declared.api, stable_versions(declared.api)[1])
