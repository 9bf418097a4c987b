"""`BrokerDisk`: what may happen to the disk of one broker of several."""

from __future__ import annotations

from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.cluster.member import Member


class BrokerDisk:
    """`cluster.broker(1).disk`."""

    __slots__ = ("_member",)

    def __init__(self, member: Member) -> None:
        self._member = member

    @property
    def directories(self) -> tuple[str, ...]:
        """The paths of the broker's log directories, the first one first."""
        return self._member.directory, *self._member.log_dirs

    def fill(self) -> None:
        """Let it be full: the broker takes no more records until `free`."""
        self._member.disk.is_full = True

    def free(self) -> None:
        """End `fill`."""
        self._member.disk.is_full = False

    def slow(self, delay_ms: int) -> None:
        """Let each write take so long, one after the other: 0 ends that.

        What is asked of the broker as a leader is answered later, and as a follower it falls
        behind; its heartbeats go on.

        Raises:
            ConfigError: `delay_ms` is negative, or no number.
        """
        if not isinstance(delay_ms, int) or delay_ms < 0:
            raise ConfigError(f"slow({delay_ms!r}): expected milliseconds, 0 or more")
        self._member.door.slow_disk.delay_ms = delay_ms

    def fail(self, directory: str) -> None:
        """Let every call to one of the log directories fail with EIO, until `repair`.

        Of a broker with several it is offline from then on, as Kafka has it, until a restart; a
        broker that loses its first one ends.

        Raises:
            ConfigError: it is none of `directories`.
        """
        if directory not in self.directories:
            raise ConfigError(f"{directory!r} is none of {', '.join(self.directories)}")
        self._member.disk.failing.add(directory)

    def repair(self) -> None:
        """End every `fail`. The broker has to be started again to use what was offline."""
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
