"""`Single`: a cluster of one broker, with the controller in the broker's directory."""

from __future__ import annotations

from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.cluster.handles.broker_node import BrokerNode
from embedlog.cluster.running_broker import RunningBroker
from embedlog.common import IN_PROCESS_HOST
from embedlog.errors import ConfigError
from embedlog.transport import InProcessTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embedlog.cluster.interception import Interception
    from embedlog.config.broker_config import BrokerConfig
    from embedlog.runtime import Runtime
    from embedlog.server.addresses import BrokerListener, ServedAddress
    from embedlog.transport import AppendOne

LOOPBACK = "127.0.0.1"


class Single:
    """The only broker, for `Cluster`. Every method may be called from any thread."""

    def __init__(
        self,
        runtime: Runtime,
        directory: str,
        config: BrokerConfig,
        *,
        durability: str,
        on_disk: bool,
        log_dirs: Sequence[str],
        cluster_id: str | None,
        waits_for_committer: bool,
    ) -> None:
        """Open the broker: see `RunningBroker`."""
        self._runtime = runtime
        self._config = config
        self._served: list[ServedAddress] = []
        self._broker = RunningBroker(
            runtime,
            directory,
            config,
            durability=durability,
            on_disk=on_disk,
            log_dirs=log_dirs,
            cluster_id=cluster_id,
            waits_for_committer=waits_for_committer,
        )

    def running(self) -> list[RunningBroker]:
        return [self._broker]

    def broker(self, node_id: int | None) -> BrokerNode:
        present = self._config.node_id
        if node_id not in (None, present):
            raise ConfigError(f"there is no broker {node_id}, only {present}")
        rack = self._config.broker_rack if self._config.is_set("broker.rack") else None
        return BrokerNode(present, lambda: self._broker, self._connect_to, rack=rack)

    def brokers(self) -> list[BrokerNode]:
        return [self.broker(None)]

    @property
    def interception(self) -> Interception:
        from embedlog.cluster.interception import Interception

        return Interception()

    @property
    def cluster_id(self) -> str:
        return self._broker.core.cluster_id

    # Clients

    def connect(
        self, client_id: str | None, owner: object, *, appends: bool = True
    ) -> InProcessTransport:
        """Return a transport: see `Cluster.connect`.

        `appends`: the transport can append without a request.
        """
        core = self._broker.core
        host = LOOPBACK if client_id is None else IN_PROCESS_HOST
        append_one: AppendOne | None = None
        if appends:  # loading Produce takes 1 ms
            from embedlog.broker.apis import produce

            # Bound here, so that an append costs one call and not two.
            append_one = produce.append_one.__get__(core)

        def make_context(api_key: int, version: int) -> RequestContext:
            return RequestContext(api_key, version, client_id=client_id or "", client_host=host)

        return InProcessTransport(
            core.handle,
            make_context,
            dispatch.versions(self._config),
            self._runtime,
            makes_topics=lambda: self._config.auto_create_topics_enable,
            disk_error=core.disk_error,
            append_one=append_one,
            is_authority=True,
            owner=owner,
        )

    def _connect_to(
        self, _node_id: int, client_id: str | None, owner: object
    ) -> InProcessTransport:
        return self.connect(client_id, owner)

    def listen(
        self,
        host: str | None,
        port: int | Mapping[int, int] | None,
        *,
        allow_remote_plaintext: bool,
        owner: object,
    ) -> BrokerListener:
        from embedlog.server.addresses import listen

        if port is not None and not isinstance(port, int):
            port = port.get(self._config.node_id, 0)
        listener = listen(
            self._broker.core,
            host,
            port,
            allow_remote_plaintext=allow_remote_plaintext,
            owner=owner,
        )
        try:
            listener.start()
        except BaseException:
            listener.served.close()
            raise
        self._served = [each for each in self._served if not each.is_closed]
        self._served.append(listener.served)
        return listener

    @property
    def addresses(self) -> list[str]:
        return [each.address for each in self._served if not each.is_closed]

    # Life

    @property
    def is_held(self) -> bool:
        return self._broker.is_held

    def close(self) -> None:
        """Close the listeners, then the broker."""
        for served in self._served:
            served.close()
        self._broker.close()
