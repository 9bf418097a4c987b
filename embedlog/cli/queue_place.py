"""Opens an existing queue for a command: in a directory, open or not, or at an address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import embedlog
from embedlog.errors import ConfigError
from embedlog.queue.names import QueueNames
from embedlog.runtime import real_runtime
from embedlog.runtime.files import is_directory
from embedlog.storage.paths import META_PROPERTIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ADDRESS = re.compile(r"[^/\\]+:\d+")


@contextmanager
def opened(
    path: str, name: str, timeout_s: float, *, create: bool = False
) -> Iterator[embedlog.Queue]:
    """Yield the queue; connect to the process that has the directory open, or open it.

    Raises:
        ConfigError: there is no such directory or queue. With `create` the queue is made.
        DirectoryLocked: a process has the directory open, and listens at no address.
        TimedOut: no broker answers at the address within `timeout_s`.
    """
    files = real_runtime().files
    if _ADDRESS.fullmatch(path) and not is_directory(files, path):
        with _queue(path, name, timeout_s, create=create) as queue:
            yield queue
        return
    if files.stat(f"{path}/{META_PROPERTIES}") is None:
        raise ConfigError(f"{path}: no data directory, and no address")
    with (
        embedlog.connect_or_open(path, timeout_ms=int(timeout_s * 1000)) as cluster,
        _queue(cluster, name, timeout_s, create=create) as queue,
    ):
        yield queue


def _queue(target: Any, name: str, timeout_s: float, *, create: bool) -> embedlog.Queue:
    with embedlog.Admin(target) as admin:
        topics = admin.list_topics(timeout_ms=int(timeout_s * 1000))
    queues = QueueNames.queues(topics)
    if not create and name not in queues:
        known = f"the queues are {', '.join(queues)}" if queues else "there are none"
        raise ConfigError(f"there is no queue {name!r}; {known}")
    return embedlog.Queue(target, name)
