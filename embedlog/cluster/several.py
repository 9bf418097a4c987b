"""`Several`: a cluster of several brokers, with their controller and their network.

    DIR/cluster.properties      marks the directory of several brokers
    DIR/controller/             the metadata log
    DIR/broker-1/ ...           one broker each, laid out as Kafka's
    DISK/broker-1/ ...          a further log directory of a broker, if `log_dirs` names disks

A cluster in memory has the same files in this process. A broker's files outlive the broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.cluster.controller_host import ControllerHost
from embedlog.cluster.faults.network import CONTROLLER, ClusterNetwork
from embedlog.cluster.handles.broker_node import BrokerNode
from embedlog.cluster.handles.cluster_listener import ClusterListener
from embedlog.cluster.interception import Interception
from embedlog.cluster.layout import first_node_id, mark_several
from embedlog.cluster.member import ClusterMember
from embedlog.cluster.presence import Presence
from embedlog.cluster.running_broker import RunningBroker
from embedlog.cluster.several_transport import SeveralTransport
from embedlog.cluster.shared import Shared
from embedlog.common import IN_PROCESS_HOST
from embedlog.config.broker_config import BrokerConfig
from embedlog.controller.controller import Controller
from embedlog.controller.metadata import MetadataDelta
from embedlog.errors import ConfigError
from embedlog.runtime import Runtime
from embedlog.runtime.files import Files
from embedlog.server.advertising import ANY_ADDRESS, LOOPBACK, address_of
from embedlog.storage.directory.preparation import look
from embedlog.storage.paths import broker_directory
from embedlog.storage.state_files.clean_shutdown import was_written_in_this_boot

_Listens = tuple[str | None, int | Mapping[int, int] | None, bool]


class Several:
    """The brokers of one cluster, for `Cluster`. Every method may be called from any thread."""

    def __init__(
        self,
        runtime: Runtime,
        directory: str,
        config: BrokerConfig,
        *,
        count: int,
        asked: int | None,
        racks: Sequence[str],
        durability: str,
        on_disk: bool,
        log_dirs: Sequence[str] = (),
        cluster_id: str | None,
    ) -> None:
        """Open `count` brokers, each with a copy of `config` and a directory below each of the
        further `log_dirs`. The first one has the number `config.node_id`. `asked` is the count that
        the user named, or None.

        Raises:
            DirectoryLocked, ConfigError, CorruptRecord: see `embedlog.open`.
        """
        self._runtime = runtime
        self._durability = durability
        self.network = ClusterNetwork(runtime)
        self.network.on_heal = self.try_again
        self._directory = directory
        self._config = config
        self._log_dirs = log_dirs
        self.members: dict[int, ClusterMember] = {}
        """Brokers by number."""
        self._presences: dict[int, Presence] = {}
        self._listens: _Listens | None = None
        """Host and port that the caller of `listen` gave, and whether other machines may connect in
        plaintext. None: no broker listens."""
        self._first_ids = _mark(
            runtime.files, (directory, *log_dirs), config, count, on_disk=on_disk
        )
        """The brokers that the cluster was made with."""
        self.host = ControllerHost(
            runtime,
            f"{directory}/controller",
            config,
            on_disk=on_disk,
            node_ids=self._first_ids,
            cluster_id=cluster_id,
            publish=self._publish,
            check=lambda controller: _refuse_fewer(controller, directory, asked),
        )
        self._shared = Shared(
            runtime, self.network, self.host, self._presences, on_disk, durability, Interception()
        )
        self.interception = self._shared.interception
        try:
            self._open(racks)
        except BaseException:
            self.close()
            raise

    def _open(self, racks: Sequence[str]) -> None:
        named = dict(zip(self._first_ids, racks, strict=False))
        for node_id in sorted({*self.host.running().image.brokers, *self._first_ids}):
            self._let_in(self._make(node_id, named.get(node_id)))
        for member in sorted(self.members.values(), key=_has_kept_all):
            member.open(is_opening=True)
        for member in self.members.values():
            member.serve()

    def _let_in(self, member: ClusterMember) -> None:
        self.members[member.node_id] = member
        self._presences[member.node_id] = member.presence

    def _make(self, node_id: int, rack: str | None) -> ClusterMember:
        config = self._config.of_node(node_id)
        advertised = address_of(config, "advertised.listeners", node_id - self._first_ids[0])
        if advertised is not None:
            host, port = advertised
            shown = f"[{host}]" if ":" in host else host
            config.set_static("advertised.listeners", f"PLAINTEXT://{shown}:{port}")
        directory = broker_directory(self._directory, node_id)
        config.set_static("embedlog.durability", self._durability)
        log_dirs = [broker_directory(place, node_id) for place in self._log_dirs]
        config.set_static("log.dirs", ",".join([directory, *log_dirs]))
        if rack is None:
            image = self.host.running().image.brokers.get(node_id)
            rack = None if image is None else image.rack
        if rack is not None:
            config.set_static("broker.rack", rack)
        return ClusterMember(self._shared, node_id, directory, config, log_dirs=log_dirs)

    # The brokers

    def _handle(self, member: ClusterMember) -> BrokerNode:
        return BrokerNode(
            member.node_id,
            lambda: member,
            self.connect_to,
            rack=member.rack,
            address=lambda: member.listening.address,
            member=lambda: member,
        )

    def broker(self, node_id: int | None) -> BrokerNode:
        if node_id is None:
            raise ConfigError(f"which broker? There are {sorted(self.members)}")
        member = self.members.get(node_id)
        if member is None:
            raise ConfigError(f"there is no broker {node_id}, only {sorted(self.members)}")
        return self._handle(member)

    def brokers(self) -> list[BrokerNode]:
        return [self._handle(member) for _, member in sorted(self.members.items())]

    def add(self, node_id: int | None, rack: str | None) -> BrokerNode:
        node_id = max(self.members) + 1 if node_id is None else node_id
        if node_id in self.members:
            raise ConfigError(f"there is a broker {node_id} already")
        if node_id <= CONTROLLER:
            raise ConfigError(f"broker {node_id}: expected a number from 0 on")
        member = self._make(node_id, rack)
        if self._listens is not None:
            _let_listen(member, self._config, self._first_ids[0], self._listens)
        member.start()
        self._let_in(member)
        return self._handle(member)

    def remove(self, node_id: int) -> None:
        if self.broker(node_id).is_running:
            self.members[node_id].stop()
        self.host.running().brokers.unregister(node_id)
        del self.members[node_id], self._presences[node_id]

    def _publish(self, delta: MetadataDelta) -> None:
        for member in list(self.members.values()):
            member.feed.publish(delta)

    def try_again(self) -> None:
        for member in list(self.members.values()):
            member.try_again()

    def running(self) -> list[RunningBroker]:
        return [each.running for each in self.members.values() if each.running is not None]

    @property
    def cluster_id(self) -> str:
        return self.host.running().image.cluster_id

    # Clients

    def connect(
        self, client_id: str | None, owner: object, *, appends: bool = True
    ) -> SeveralTransport:
        """Return a transport to all brokers: see `Cluster.connect`. It has no `append`."""
        return self._transport(client_id, self.members, owner)

    def connect_to(self, node_id: int, client_id: str | None, owner: object) -> SeveralTransport:
        """Return a transport to one broker."""
        return self._transport(client_id, {node_id: self.members[node_id]}, owner)

    def _transport(
        self, client_id: str | None, members: Mapping[int, ClusterMember], owner: object
    ) -> SeveralTransport:
        host = LOOPBACK if client_id is None else IN_PROCESS_HOST

        def make_context(api_key: int, version: int) -> RequestContext:
            return RequestContext(api_key, version, client_id=client_id or "", client_host=host)

        first = next(iter(members.values()))
        return SeveralTransport(
            members,
            make_context,
            dispatch.versions(first.config),
            self._runtime,
            owner=owner,
        )

    def listen(
        self,
        host: str | None,
        port: int | Mapping[int, int] | None,
        *,
        allow_remote_plaintext: bool,
        owner: object,
    ) -> ClusterListener:
        """Let each broker listen at its own port: they count up from `port`, and port 0 finds a
        free port for each. The setting `listeners` replaces a missing host or port. `port` may also
        have the port of each broker, by its number.
        """
        self._listens = host, port, allow_remote_plaintext
        for member in self.members.values():
            _let_listen(member, self._config, self._first_ids[0], self._listens)
        for member in self.members.values():
            if member.running is not None:
                member.listening.open(member.running.core)
        return ClusterListener(self.members, self._runtime.scheduler, owner)

    @property
    def addresses(self) -> list[str]:
        return [each.address for each in self.brokers() if each.address is not None]

    # Life

    @property
    def is_held(self) -> bool:
        return self.host.is_held or any(each.is_held for each in self.running())

    def close(self) -> None:
        """Close all brokers together: no broker takes over leadership."""
        for member in self.members.values():
            member.begin_close()
        self.network.close()
        for member in self.members.values():
            member.close()
        self.host.close()


def _mark(
    files: Files, wholes: Sequence[str], config: BrokerConfig, count: int, *, on_disk: bool
) -> range:
    """Mark the first of `wholes` as a directory of several brokers; return their numbers."""
    first_id = first_node_id(files, wholes[0], config.node_id)
    node_ids = range(first_id, first_id + count)
    if on_disk:
        _look(files, wholes, node_ids)
    mode = int(config.embedlog_data_dir_mode, 8)
    mark_several(files, wholes[0], count, first_id, mode=mode, sync=on_disk)
    return node_ids


def _look(files: Files, wholes: Sequence[str], node_ids: Iterable[int]) -> None:
    """Refuse directories of other programs, nodes or clusters before anything changes."""
    for node_id in node_ids:
        for whole in wholes:
            with suppress(OSError):  # the broker that opens the directory raises the error
                look(files, broker_directory(whole, node_id), node_id)


def _refuse_fewer(controller: Controller, directory: str, asked: int | None) -> None:
    """Raise ConfigError if the cluster has more brokers than `asked`."""
    known = sorted(controller.image.brokers)
    if asked is not None and asked < len(known):
        raise ConfigError(
            f"{directory} belongs to {len(known)} brokers, {known}, and cannot be opened with "
            f"{asked}: leave the number out, and remove the others with remove_broker"
        )


def _let_listen(
    member: ClusterMember,
    config: BrokerConfig,
    first_id: int,
    listens: _Listens,
) -> None:
    """Set the address for a broker's next `open`: see `Several.listen`."""
    host, port, allow_remote_plaintext = listens
    if isinstance(port, Mapping):
        member.listening.ask(
            host or LOOPBACK,
            port.get(member.node_id, 0),
            allow_remote_plaintext=allow_remote_plaintext,
        )
        return
    place, named = member.node_id - first_id, None
    if config.is_set("listeners"):
        named = address_of(config.of_node(member.node_id), "listeners", place)
    if host is None:
        host = LOOPBACK if named is None else named[0]
        host = host or (ANY_ADDRESS if allow_remote_plaintext else LOOPBACK)
    if port is None:
        port = 0 if named is None else named[1]
    elif port:
        port += place
    member.listening.ask(host, port, allow_remote_plaintext=allow_remote_plaintext)


def _has_kept_all(member: ClusterMember) -> bool:
    """Return whether everything that a stopped broker wrote survived the end of its last run.

    Brokers that lost data are opened first. A broker that was not closed cleanly leaves the in-sync
    sets when it is opened, so the broker that is opened last stays in them and may lead.
    """
    directories = (member.directory, *member.log_dirs)
    try:
        return all(was_written_in_this_boot(member.disk, each) for each in directories)
    except OSError:
        return False  # `ClusterMember.open` will raise the error
