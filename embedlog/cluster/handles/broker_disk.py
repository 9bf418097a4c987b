"""`BrokerDisk`: faults of the disk of one broker."""

from __future__ import annotations

from embedlog.errors import ConfigError
from embedlog.runtime.outer_call import outer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.cluster.lone_member import LoneMember
    from embedlog.cluster.member import ClusterMember


class BrokerDisk:
    """The disk of one broker, for example `cluster.broker(1).disk`."""

    __slots__ = ("_member",)

    def __init__(self, member: ClusterMember | LoneMember) -> None:
        self._member = member

    @property
    def directories(self) -> tuple[str, ...]:
        """Paths of the broker's log directories; the first has the metadata."""
        return self._member.directories

    @outer
    def fill(self) -> None:
        """Fill the disk: the broker takes no more records until `free`."""
        self._member.faulty_disk().is_full = True

    @outer
    def free(self) -> None:
        """End `fill`."""
        self._member.disk.is_full = False

    @outer
    def slow(self, delay_ms: int) -> None:
        """Make each write take `delay_ms`, one after the other. 0 ends the fault.

        As a leader the broker answers later, as a follower it falls behind. Heartbeats continue.

        Raises:
            ConfigError: `delay_ms` is negative or not an int.
        """
        if not isinstance(delay_ms, int) or delay_ms < 0:
            raise ConfigError(f"slow({delay_ms!r}): expected milliseconds, 0 or more")
        self._member.slow_disk(delay_ms)

    @outer
    def fail(self, directory: str) -> None:
        """Make every file call in a log directory fail with EIO until `repair`.

        The directory is offline until the broker restarts, as in Kafka. One of several brokers that
        loses its first directory ends. The only broker stays, and its logs refuse records.

        Raises:
            ConfigError: `directory` is not in `directories`.
        """
        if directory not in self.directories:
            raise ConfigError(f"{directory!r} is none of {', '.join(self.directories)}")
        self._member.faulty_disk().failing.add(directory)

    @outer
    def repair(self) -> None:
        """End every `fail`. Restart the broker to bring its directories online again."""
        self._member.disk.failing.clear()

    def __repr__(self) -> str:
        disk, delay_ms = self._member.disk, self._member.door.slow_disk.delay_ms
        state = [
            "full" if disk.is_full else "",
            f"slow by {delay_ms} ms" if delay_ms else "",
            f"failing at {', '.join(sorted(disk.failing))}" if disk.failing else "",
        ]
        found = ", ".join(filter(None, state)) or "well"
        return f"<BrokerDisk of broker {self._member.node_id}, {found}>"
