"""`Single`: a cluster of one broker, with the controller in the broker's directory."""

from __future__ import annotations

from _weakref import ReferenceType, ref

from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.cluster.handles.broker_node import BrokerNode
from embedlog.cluster.running_broker import RunningBroker
from embedlog.common import IN_PROCESS_HOST
from embedlog.errors import ConfigError, IllegalState
from embedlog.runtime.forks import stays_in_parent
from embedlog.transport import InProcessTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embedlog.cluster.interception import Interception
    from embedlog.cluster.lone_member import LoneMember
    from embedlog.config.broker_config import BrokerConfig
    from embedlog.runtime import Runtime
    from embedlog.server.addresses import BrokerListener, ServedAddress
    from embedlog.transport import AppendOne

LOOPBACK = "127.0.0.1"


class Single:
    """The only broker, for `Cluster`. Every method may be called from any thread.

    `LoneMember`, which can stop and start the broker, is loaded when a test asks for it.
    """

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
        self._directories = (directory, *log_dirs)
        self._on_disk = on_disk
        self._served: list[ServedAddress] = []
        self._transports: dict[int, ReferenceType[InProcessTransport]] = {}
        self._member: LoneMember | None = None
        self._interception: Interception | None = None
        stays_in_parent(self)  # for handles: they outlive the cluster's own refusal

        def open_broker(runtime: Runtime, durability: str, *, is_restart: bool) -> RunningBroker:
            return RunningBroker(
                runtime,
                directory,
                config,
                durability=durability,
                on_disk=on_disk,
                log_dirs=log_dirs,
                cluster_id=cluster_id,
                waits_for_committer=waits_for_committer,
                is_restart=is_restart,
            )

        self._open_broker = open_broker
        self._durability = durability
        self._broker = open_broker(runtime, durability, is_restart=False)
        """The broker that the constructor opened."""

    @property
    def _newest(self) -> RunningBroker:
        """The broker that was opened last, running or not."""
        return self._broker if self._member is None else self._member.newest

    def running(self) -> list[RunningBroker]:
        found = self._state().running
        return [] if found is None else [found]

    def broker(self, node_id: int | None) -> BrokerNode:
        present = self._config.node_id
        if node_id not in (None, present):
            raise ConfigError(f"there is no broker {node_id}, only {present}")
        rack = self._config.broker_rack if self._config.is_set("broker.rack") else None
        return BrokerNode(
            present,
            self._state,
            self._connect_to,
            rack=rack,
            address=lambda: next(iter(self.addresses), None),
            member=self.member,
        )

    def _state(self) -> LoneMember | _Untouched:
        return _Untouched(self._broker) if self._member is None else self._member

    def brokers(self) -> list[BrokerNode]:
        return [self.broker(None)]

    @property
    def interception(self) -> Interception:
        """The interceptor of the broker, over its restarts."""
        if self._interception is None:
            from embedlog.cluster.interception import Interception

            self._interception = Interception()
        return self._interception

    @property
    def cluster_id(self) -> str:
        return self._newest.core.cluster_id

    # Faults

    def member(self) -> LoneMember:
        """Return the part that takes faults; make it at the first call."""
        if self._member is None:
            from embedlog.cluster.lone_member import LoneMember

            self._member = LoneMember(
                self._runtime,
                self._config,
                self._directories,
                self._broker,
                open_again=self._open_again,
                addresses=self._open_addresses,
                lead_clients=self._lead_clients,
            )
        return self._member

    def _open_again(self, runtime: Runtime) -> RunningBroker:
        level = self._durability
        if not self._on_disk:
            # A broker in memory that starts again keeps its earlier records at level "os".
            level = "os"
            self._config.set_static("embedlog.durability", level)
        opened = self._open_broker(runtime, level, is_restart=True)
        if self._interception is not None:
            self._interception.install(opened.core)
        return opened

    def _lead_clients(self, member: LoneMember) -> None:
        from embedlog.cluster.lone_link import LoneLink

        for reference in list(self._transports.values()):
            transport = reference()
            if transport is not None:
                transport.go_through(LoneLink(member))

    # Clients

    def connect(
        self, client_id: str | None, owner: object, *, appends: bool = True
    ) -> InProcessTransport:
        """Return a transport: see `Cluster.connect`.

        `appends`: the transport can append without a request.
        """
        core = self._newest.core
        host = LOOPBACK if client_id is None else IN_PROCESS_HOST
        append_one: AppendOne | None = None
        if appends:  # loading Produce takes 1 ms
            from embedlog.broker.apis import produce

            # Bound here, so that an append costs one call and not two.
            append_one = produce.append_one.__get__(core)

        def make_context(api_key: int, version: int) -> RequestContext:
            return RequestContext(api_key, version, client_id=client_id or "", client_host=host)

        transport = InProcessTransport(
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
        key, transports = id(transport), self._transports
        transports[key] = ref(transport, lambda _: transports.pop(key, None))
        if self._member is not None and self._member.is_attached:
            from embedlog.cluster.lone_link import LoneLink

            transport.go_through(LoneLink(self._member))
        return transport

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
        if not self.running():
            raise IllegalState(f"broker {self._config.node_id} does not run: start it first")
        member = self._member
        listener = listen(
            self._newest.core,
            host,
            port,
            allow_remote_plaintext=allow_remote_plaintext,
            owner=owner,
            door=member.door if member is not None and member.is_attached else None,
        )
        try:
            listener.start()
        except BaseException:
            listener.served.close()
            raise
        self._served = self._open_addresses()
        self._served.append(listener.served)
        return listener

    def _open_addresses(self) -> list[ServedAddress]:
        return [each for each in self._served if not each.is_closed]

    @property
    def addresses(self) -> list[str]:
        return [each.address for each in self._open_addresses()]

    # Life

    @property
    def is_held(self) -> bool:
        return self._newest.is_held

    def close(self) -> None:
        """Close the listeners, then the broker."""
        for served in self._served:
            served.close()
        if self._member is not None:
            self._member.close()
        else:
            self._broker.close()


class _Untouched:
    """The state of a broker that no test has stopped or paused, for `BrokerNode`."""

    is_paused = False

    def __init__(self, running: RunningBroker) -> None:
        self.running = running
