"""`ClusterListener`: the addresses of all brokers of a cluster of several."""

from __future__ import annotations

from collections.abc import Mapping

from embedlog.cluster.member import ClusterMember
from embedlog.runtime.outer_call import outer, outer_close
from embedlog.runtime.pending import Pending
from embedlog.runtime.scheduler import Scheduler
from embedlog.server.addresses import ServedAddress


class ClusterListener:
    """An address for each broker, including brokers that start later. `Cluster.listen` returns it.

    `address` is what any Kafka client takes as its bootstrap servers.
    """

    def __init__(
        self, members: Mapping[int, ClusterMember], scheduler: Scheduler, owner: object
    ) -> None:
        """The listener keeps `owner`, the cluster, alive."""
        self._members = members
        self._scheduler = scheduler
        self._owner = owner
        self._stopped: Pending[object] = Pending()

    @property
    def address(self) -> str:
        """`host:port` of every broker, separated by commas."""
        return ",".join(self.addresses.values())

    @property
    def addresses(self) -> dict[int, str]:
        """`host:port` by broker number."""
        return {
            node_id: address
            for node_id, member in sorted(self._members.items())
            if (address := member.listening.address) is not None
        }

    @property
    def served(self) -> list[ServedAddress]:
        """The open addresses, of the brokers that run."""
        found = (member.listening.served for member in self._members.values())
        return [each for each in found if each is not None]

    @property
    def port(self) -> int:
        """Port of the first broker."""
        return int(next(iter(self.addresses.values())).rpartition(":")[2])

    @property
    def signal_fd(self) -> int:
        """See `wire.net.listener.Listener.signal_fd`."""
        running = (each for each in self._members.values() if each.running is not None)
        return next(running).listening.signal_fd

    @outer
    def run(self) -> None:
        """Wait until `stop`. Each broker's listener has its own thread."""
        self._scheduler.wait(self._stopped, None)

    def stop(self) -> None:
        """Make `run` return soon. Callable from any thread and from a signal handler."""
        self._stopped.complete(None)

    @outer_close(in_callbacks=False)
    def close(self) -> None:
        """Stop listening. Clients in this process can still use the brokers."""
        for member in self._members.values():
            member.listening.forget()

    def _ends_soon(self) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<ClusterListener {self.address or 'closed'}>"
