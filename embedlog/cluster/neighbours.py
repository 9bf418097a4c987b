"""`Neighbours`: the cluster as one broker of several sees it; all it asks others goes through here.

It is what `broker.peers.Peers` and `replication.membership.Membership` ask for.
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
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol, TypeVar

    from embedlog.cluster.door import Door
    from embedlog.cluster.faults.network import ClusterNetwork
    from embedlog.cluster.listening import Listening
    from embedlog.cluster.node import Node
    from embedlog.common import TopicPartition
    from embedlog.config.broker_config import BrokerConfig
    from embedlog.controller.controller import Controller
    from embedlog.controller.metadata import BrokerImage
    from embedlog.runtime import Runtime
    from embedlog.runtime.pending import Pending
    from wire.schema import Message, R, Request

    T = TypeVar("T")

    class Neighbour(Protocol):
        """A `Member`, as this file knows it."""

        config: BrokerConfig
        door: Door
        is_hidden: bool
        left_ms: int | None
        listening: Listening
        node: Node | None
        node_id: int

        def kill(self, *, lose_unsynced: bool) -> None:
            """See `Member.kill`."""

    class World(Protocol):
        """What all members share: `Several`, as this file knows it."""

        network: ClusterNetwork
        runtime: Runtime

        @property
        def controller(self) -> Controller | None:
            """None while it does not run."""

        @property
        def members(self) -> Mapping[int, Neighbour]:
            """All brokers, by number."""


_TIMEOUT_MS = 30_000
_FAREWELL_MS = 500
"""So long the others go on naming a broker that has left: time enough for clients to have moved."""


class Neighbours:
    """Around one broker. Every method may be called from any thread."""

    def __init__(self, world: World, member: Neighbour) -> None:
        self._world = world
        self._member = member
        self._network = world.network
        self.node_id = member.node_id
        self.config = member.config
        self.broker_epoch = -1
        """Of its present registration."""

    # The controller

    def reaches_controller(self) -> bool:
        """See `Peers.reaches_controller`."""
        network = self._network
        return self._world.controller is not None and not (
            network.is_cut(self.node_id, CONTROLLER) or network.is_cut(CONTROLLER, self.node_id)
        )

    def ask_controller(self, call: Callable[[Controller], T]) -> Pending[T]:
        """See `Peers.ask_controller`."""

        def perform() -> T:
            controller = self._world.controller
            if controller is None:
                raise errors.Network("the controller does not run")
            return call(controller)

        return self._network.call(self.node_id, CONTROLLER, perform, timeout_ms=_TIMEOUT_MS)

    def give_up(self) -> None:
        """See `Peers.give_up`."""
        if self._member.node is not None:
            self._member.kill(lose_unsynced=False)

    # The others

    def send(self, node_id: int, request: Request[R], *, timeout_ms: int) -> Pending[R]:
        """See `Peers.send`."""
        target = self._world.members.get(node_id)
        context = _newest_context(type(request))

        def perform() -> R | Pending[R]:
            if target is None:
                raise errors.Network(f"there is no broker {node_id}")
            return target.door.handle(context, request)

        answer = self._network.call(self.node_id, node_id, perform, timeout_ms=timeout_ms)
        slow_disk = self._member.door.slow_disk
        if slow_disk.is_slow and context.api_key == ApiKey.FETCH:
            return slow_disk.written(answer)
        return answer

    def address(self, node_id: int, context: RequestContext) -> tuple[str, int] | None:
        """See `Peers.address`."""
        target = self._world.members.get(node_id)
        if target is None or target.is_hidden:
            return None
        if context.connection is None:
            return context.advertised_host, context.advertised_port
        port = target.listening.port
        if port is None and self._member.listening.port is None:
            # Bytes without sockets (`testing.LoopbackChannels`): whoever connects says to whom.
            port = context.advertised_port
        return None if port is None else (context.advertised_host, port)

    def has_just_left(self, node_id: int) -> bool:
        """See `Peers.has_just_left`."""
        target = self._world.members.get(node_id)
        if target is None or target.left_ms is None:
            return False
        return self._world.runtime.clock.monotonic_ms() - target.left_ms < _FAREWELL_MS

    def let_follow(self, topic_partition: TopicPartition, replicas: Sequence[int]) -> None:
        """See `Peers.let_follow`."""
        for node_id in replicas:
            target = self._world.members.get(node_id)
            node = None if target is None else target.node
            if node is not None and node_id != self.node_id:
                node.core.publisher.want(topic_partition)

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
        """See `Membership.alter_partition`."""
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
        """See `Membership.epoch_of`."""
        known = self._known(node_id)
        return -1 if known is None else known.epoch

    def is_eligible(self, node_id: int) -> bool:
        """See `Membership.is_eligible`."""
        known = self._known(node_id)
        return known is not None and not (known.is_fenced or known.in_controlled_shutdown)

    def rack_of(self, node_id: int) -> str | None:
        """See `Membership.rack_of`."""
        known = self._known(node_id)
        return None if known is None else known.rack

    def _known(self, node_id: int) -> BrokerImage | None:
        node = self._member.node
        return None if node is None else node.core.image.brokers.get(node_id)


def _newest_context(kind: type[Message]) -> RequestContext:
    """Of a request that stays in the process: at the newest version that brokers serve."""
    declared = kind.__declaration__
    assert declared is not None, kind
    assert declared.api is not None, kind
    return RequestContext(declared.api, stable_versions(declared.api)[1])
