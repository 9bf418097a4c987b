"""The committer's part: have the owner of a data directory adopt a manifest, or be the owner.

    somebody owns it      the manifest is in the inbox: wait for the answer
    nobody does           open the directory as a cluster, which takes what is in the inbox

A lock on the directory says which it is (see `runtime.lock_owner`). It ends with its process, so no
heartbeat is needed to know whether the owner lives. An owner that lives and gives its duties no
time (an embedded cluster that nobody calls, without `background=True`) answers nothing: the wait
ends with an error that names it.
"""

from __future__ import annotations

from contextlib import suppress

from embedlog.errors import ConfigError, DirectoryLocked, TimedOut
from embedlog.runtime import real_runtime
from embedlog.runtime.pending import Pending
from embedlog.storage.directory.data_path import existing_directory
from embedlog.storage.directory.meta_properties import node_id_of
from embedlog.storage.staging import exchange
from embedlog.storage.staging.exchange import tidy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime import Runtime
    from embedlog.storage.staging.exchange import Answer
    from embedlog.storage.staging.manifest import Manifest, Replacement

TIMEOUT_MS = 60_000
_LOOK_MS = 10
_KEEPING_ALL = {"log.retention.ms": "-1", "log.retention.bytes": "-1"}
"""A committer does not know the settings of the program whose directory it opens for a moment: for
topics without a retention of their own it must not remove what that program would keep."""
_OWN_LOOK_MS = 200
"""Between attempts to be the owner: each opens the lock file."""


def commit(
    path: str,
    manifest: Manifest | Replacement,
    *,
    timeout_ms: int = TIMEOUT_MS,
    runtime: Runtime | None = None,
) -> Answer:
    """Have a manifest adopted; return its ranges of offsets, none if it was done already.

    What it names is committed when this returns, and nothing of it when it raises; see TimedOut.

    Raises:
        ConfigError: `path` is no directory, or that of several brokers.
        TimedOut: the owner has not taken it; it was withdrawn. Or it has taken it and not answered:
            then the message says that the outcome is open, and the same version of the application
            may be committed again.
        KafkaError: a log or the disk refuses.
        StorageFailed: what was staged is damaged.
    """
    runtime = runtime or real_runtime()
    files = runtime.files
    path = existing_directory(files, path)
    exchange.leave(files, path, manifest)
    try:
        answer = _Waiting(runtime, path, manifest.id).wait(timeout_ms)
    except BaseException:
        # Nobody will ask for the answer: what was not taken shall not be made later.
        with suppress(OSError):
            exchange.withdraw(files, path, manifest.id)
        raise
    exchange.remove_answer(files, path, manifest.id)
    tidy(files, path)
    answer.check()
    return answer


class _Waiting:
    """One manifest that was left in the inbox."""

    def __init__(self, runtime: Runtime, path: str, id: str) -> None:
        self._runtime = runtime
        self._files = runtime.files
        self._path = path
        self._id = id
        self._owner = "nobody has it open"

    def wait(self, timeout_ms: int) -> Answer:
        """The answer. Raises TimedOut."""
        clock = self._runtime.clock
        began_ms = own_ms = clock.monotonic_ms()
        is_taken = False
        while True:
            answer = exchange.read_answer(self._files, self._path, self._id)
            if answer is not None:
                return answer
            now_ms = clock.monotonic_ms()
            if now_ms >= own_ms:
                self._try_to_own()
                own_ms = clock.monotonic_ms() + _OWN_LOOK_MS
                continue
            if now_ms - began_ms >= timeout_ms:
                if is_taken:
                    raise TimedOut(
                        f"{self._path}: its owner has taken the commit {self._id} and not answered "
                        f"for {timeout_ms} ms; it may still be made. To commit the same version of "
                        f"the application again is safe. {self._owner}"
                    )
                if exchange.withdraw(self._files, self._path, self._id):
                    raise TimedOut(
                        f"{self._path}: nobody has taken the commit {self._id} for {timeout_ms} "
                        f"ms, and it was withdrawn. The owner must give its duties time: open "
                        f"it with background=True, or let it listen. {self._owner}"
                    )
                is_taken, began_ms = True, now_ms
            self._runtime.scheduler.wait(Pending(), _LOOK_MS)

    def _try_to_own(self) -> None:
        """Where nobody owns the directory do the owner's work; not of one broker of several."""
        from embedlog.cluster.cluster import Cluster
        from embedlog.cluster.layout import refuse_one_of_several

        try:
            refuse_one_of_several(self._files, self._path)
        except ConfigError as error:
            self._owner = str(error)
            return
        try:
            cluster = Cluster(self._path, self._settings(), waits_for_committer=False)
        except DirectoryLocked as error:
            self._owner = str(error)
            return
        try:
            cluster.adopt_staged()
        finally:
            cluster.close()

    def _settings(self) -> dict[str, str]:
        """Those of a broker that is a guest in the directory."""
        node_id = node_id_of(self._runtime, self._path)
        return _KEEPING_ALL if node_id is None else {**_KEEPING_ALL, "node.id": node_id}
