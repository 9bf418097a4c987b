"""`Several`: the brokers of a cluster that has more than one, their controller and their network.

    DIR/cluster.properties      what tells such a directory
    DIR/controller/             the metadata log
    DIR/broker-1/ ...           one broker each, laid out as Kafka's
    DISK/broker-1/ ...          the same on another disk, where `log_dirs` names some

In memory it is the same, in files of this process; what a broker has written outlives the broker.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.cluster.controller_host import ControllerHost
from embedlog.cluster.faults.network import CONTROLLER, ClusterNetwork
from embedlog.cluster.handles.broker_node import BrokerNode
from embedlog.cluster.handles.cluster_listener import ClusterListener
from embedlog.cluster.layout import mark_several
from embedlog.cluster.member import Member
from embedlog.cluster.several_transport import SeveralTransport
from embedlog.common import IN_PROCESS_HOST
from embedlog.config.broker_config import BrokerConfig
from embedlog.errors import ConfigError
from embedlog.storage.paths import broker_directory
from embedlog.storage.state_files.clean_shutdown import was_written_in_this_boot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embedlog.cluster.node import Node
    from embedlog.controller.controller import Controller
    from embedlog.controller.metadata import MetadataDelta
    from embedlog.runtime import Runtime

LOOPBACK = "127.0.0.1"


class Several:
    """The brokers of one cluster. Every method may be called from any thread."""

    def __init__(
        self,
        runtime: Runtime,
        directory: str,
        config: BrokerConfig,
        *,
        count: int,
        racks: Sequence[str],
        durability: str,
        on_disk: bool,
        log_dirs: Sequence[str] = (),
        cluster_id: str | None,
    ) -> None:
        """Open them all, brokers 1 to `count`, each with the settings of `config` and its own, and
        with a directory below each of the further `log_dirs`.

        Raises:
            DirectoryLocked, ConfigError, CorruptRecord: see `embedlog.open`.
        """
        self.runtime = runtime
        self.on_disk = on_disk
        self.durability = durability
        self.network = ClusterNetwork(runtime)
        self.network.on_heal = self.try_again
        self._directory = directory
        self._config = config
        self._log_dirs = log_dirs
        self.members: dict[int, Member] = {}
        """By number."""
        self._listens: tuple[str, int, bool] | None = None
        """Where the first broker does, and whether anybody may speak plaintext to it; None: no
        broker listens."""
        mark_several(
            runtime.files,
            directory,
            count,
            mode=int(config.embedlog_data_dir_mode, 8),
            sync=on_disk,
        )
        self.host = ControllerHost(
            runtime,
            f"{directory}/controller",
            config,
            on_disk=on_disk,
            node_ids=range(1, count + 1),
            cluster_id=cluster_id,
            publish=self._publish,
        )
        try:
            known = sorted(self.running_controller().image.brokers)
            for node_id in sorted({*known, *range(1, count + 1)}):
                rack = racks[node_id - 1] if node_id <= len(racks) else None
                self.members[node_id] = self._make(node_id, rack)
            for member in sorted(self.members.values(), key=_has_kept_all):
                member.open(is_opening=True)
            for member in self.members.values():
                member.serve()
        except BaseException:
            self.close()
            raise

    def _make(self, node_id: int, rack: str | None) -> Member:
        config = self._config.of_node(node_id)
        directory = broker_directory(self._directory, node_id)
        config.set_static("embedlog.durability", self.durability)
        log_dirs = [broker_directory(place, node_id) for place in self._log_dirs]
        config.set_static("log.dirs", ",".join([directory, *log_dirs]))
        if rack is None:
            image = self.running_controller().image.brokers.get(node_id)
            rack = None if image is None else image.rack
        if rack is not None:
            config.set_static("broker.rack", rack)
        return Member(self, node_id, directory, config, log_dirs=log_dirs)

    # The brokers

    def _handle(self, member: Member) -> BrokerNode:
        return BrokerNode(
            member.node_id,
            lambda: member.node,
            self.connect_to,
            rack=member.rack,
            member=member,
        )

    def broker(self, node_id: int | None) -> BrokerNode:
        """See `Cluster.broker`."""
        if node_id is None:
            raise ConfigError(f"which broker? There are {sorted(self.members)}")
        member = self.members.get(node_id)
        if member is None:
            raise ConfigError(f"there is no broker {node_id}, only {sorted(self.members)}")
        return self._handle(member)

    def brokers(self) -> list[BrokerNode]:
        """All of them, by number."""
        return [self._handle(member) for _, member in sorted(self.members.items())]

    def add(self, node_id: int | None, rack: str | None) -> BrokerNode:
        """See `Cluster.add_broker`."""
        node_id = max(self.members) + 1 if node_id is None else node_id
        if node_id in self.members:
            raise ConfigError(f"there is a broker {node_id} already")
        if node_id <= CONTROLLER:
            raise ConfigError(f"broker {node_id}: expected a positive number")
        member = self._make(node_id, rack)
        if self._listens is not None:
            _let_listen(member, *self._listens)
        member.start()
        self.members[node_id] = member
        return self._handle(member)

    def remove(self, node_id: int) -> None:
        """See `Cluster.remove_broker`."""
        node = self.broker(node_id)
        if node.is_running:
            node.stop()
        self.running_controller().brokers.unregister(node_id)
        del self.members[node_id]

    @property
    def controller(self) -> Controller | None:
        """None while it does not run."""
        return self.host.controller

    def running_controller(self) -> Controller:
        """The controller. Raises NotController while it does not run."""
        controller = self.host.controller
        if controller is None:
            raise errors.NotController("the controller does not run")
        return controller

    def _publish(self, delta: MetadataDelta) -> None:
        for member in list(self.members.values()):
            member.feed.publish(delta)

    def try_again(self) -> None:
        """What waited for the network, or for the controller, may go on."""
        for member in list(self.members.values()):
            member.try_again()

    def nodes(self) -> list[Node]:
        """Those that run."""
        return [member.node for member in self.members.values() if member.node is not None]

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self.running_controller().image.cluster_id

    # Clients

    def connect(
        self, client_id: str | None, owner: object, *, appends: bool = True
    ) -> SeveralTransport:
        """A transport to all of them: see `Cluster.connect`. They always take requests."""
        return self._transport(client_id, self.members, owner)

    def connect_to(self, node_id: int, client_id: str | None, owner: object) -> SeveralTransport:
        """A transport to one of them."""
        return self._transport(client_id, {node_id: self.members[node_id]}, owner)

    def _transport(
        self, client_id: str | None, members: Mapping[int, Member], owner: object
    ) -> SeveralTransport:
        host = LOOPBACK if client_id is None else IN_PROCESS_HOST

        def make_context(api_key: int, version: int) -> RequestContext:
            return RequestContext(api_key, version, client_id=client_id or "", client_host=host)

        first = next(iter(members.values()))
        return SeveralTransport(
            members,
            make_context,
            dispatch.versions(first.config),
            self.runtime,
            owner=owner,
        )

    def listen(
        self, host: str | None, port: int | None, *, allow_remote_plaintext: bool, owner: object
    ) -> ClusterListener:
        """Let every broker listen: the first at `port`, the others behind it; 0 finds free ones."""
        self._listens = host or LOOPBACK, port or 0, allow_remote_plaintext
        for member in self.members.values():
            _let_listen(member, *self._listens)
            if member.node is not None:
                member.listening.open(member.node.core)
        return ClusterListener(self.members, self.runtime.scheduler, owner)

    @property
    def addresses(self) -> list[str]:
        """Where they listen."""
        return [each.address for each in self.brokers() if each.address is not None]

    # Life

    @property
    def is_held(self) -> bool:
        """Is any directory still this process's?"""
        return self.host.is_held or any(node.is_held for node in self.nodes())

    def close(self) -> None:
        """Close all brokers together: none takes over from another."""
        for member in self.members.values():
            member.begin_close()
        self.network.close()
        for member in self.members.values():
            member.close()
        self.host.close()


def _let_listen(member: Member, host: str, port: int, allow_remote_plaintext: bool) -> None:
    own = port + member.node_id - 1 if port else 0
    member.listening.ask(host, own, allow_remote_plaintext=allow_remote_plaintext)


def _has_kept_all(member: Member) -> bool:
    """Did all that a broker last wrote, which does not run, outlive whatever ended it?

    Such ones are opened last: of brokers that were not closed cleanly each in turn leaves the
    in-sync sets, and the last of them stays, and may lead.
    """
    directories = (member.directory, *member.log_dirs)
    try:
        return all(was_written_in_this_boot(member.disk, each) for each in directories)
    except OSError:
        return False  # it will be told when the directory is opened
