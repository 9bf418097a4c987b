"""The directories that logs are wanted in which are not made yet: AlterReplicaLogDirs may come
before the replica does.
"""

from __future__ import annotations

from embedlog.runtime.locks import Rank, ranked_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition

COUNT_MAX = 10_000
"""Of more the oldest are forgotten: anybody may ask, also for topics that there are not."""


class PreferredDirectories:
    """Called by any thread."""

    __slots__ = ("_lock", "_paths")

    def __init__(self) -> None:
        self._lock = ranked_lock(Rank.PREFERRED)
        self._paths: dict[TopicPartition, str] = {}

    def note(self, topic_partition: TopicPartition, path: str) -> None:
        """Let the partition's log be made in the directory at `path`, if it is made one day."""
        with self._lock:
            self._paths.pop(topic_partition, None)
            self._paths[topic_partition] = path
            if len(self._paths) > COUNT_MAX:
                del self._paths[next(iter(self._paths))]

    def take(self, topic_partition: TopicPartition) -> str | None:
        """Where the log is to be made, for the one time that it is; None where nobody said."""
        with self._lock:
            return self._paths.pop(topic_partition, None)
