"""How a committer gets a manifest adopted: by the owner of the data directory, or as the owner.

    the directory has an owner     leave the manifest in the inbox and wait for the answer
    it has no owner                open the directory as a cluster, which reads its inbox

A lock on the directory tells whether it has an owner (see `runtime.lock_owner`). The lock ends with
the owner's process, so no heartbeat is needed. An owner that lives but never runs its duties (an
embedded cluster that nobody calls, without `background=True`) does not answer: the wait ends with
an error that names the owner.
"""

from __future__ import annotations

from contextlib import closing, suppress

from embedlog.errors import ConfigError, DirectoryLocked, TimedOut
from embedlog.runtime import Runtime, real_runtime
from embedlog.runtime.pending import Pending
from embedlog.storage.directory.data_path import existing_directory
from embedlog.storage.directory.meta_properties import node_id_of
from embedlog.storage.staging import exchange
from embedlog.storage.staging.exchange import Answer, tidy
from embedlog.storage.staging.manifest import Manifest, Replacement

TIMEOUT_MS = 60_000
_LOOK_MS = 10
_KEEPING_ALL = {"log.retention.ms": "-1", "log.retention.bytes": "-1"}
_OWN_LOOK_MS = 200
"""Milliseconds between attempts to become the owner; each attempt opens the lock file."""


def commit(
    path: str,
    manifest: Manifest | Replacement,
    *,
    timeout_ms: int = TIMEOUT_MS,
    runtime: Runtime | None = None,
) -> Answer:
    """Have a manifest adopted; return its ranges of offsets, or none if it was adopted before.

    When this returns, the files of the manifest are committed. After an error they are not; after
    the second case of TimedOut, or an interrupt such as Ctrl-C, they may be.

    Raises:
        ConfigError: `path` is not a directory, or belongs to a cluster of several brokers.
        TimedOut: the owner did not take the manifest, which was withdrawn. Or the owner took it and
            did not answer: then the message says that the outcome is open, and it is safe to commit
            the same version of the application again.
        KafkaError: a log or the disk refuses the commit.
        StorageFailed: a staged file is damaged.
    """
    runtime = runtime or real_runtime()
    files = runtime.files
    path = existing_directory(files, path)
    exchange.leave(files, path, manifest)
    try:
        answer = _wait(runtime, path, manifest.id, timeout_ms)
    except BaseException:
        # Nobody will read the answer: withdraw the manifest, so that it is not adopted later.
        with suppress(OSError):
            exchange.withdraw(files, path, manifest.id)
        raise
    exchange.remove_answer(files, path, manifest.id)
    tidy(files, path)
    answer.check()
    return answer


def _wait(runtime: Runtime, path: str, id: str, timeout_ms: int) -> Answer:
    """Wait for the answer to a manifest in the inbox. Raises TimedOut."""
    files, clock = runtime.files, runtime.clock
    began_ms = own_ms = clock.monotonic_ms()
    owner, is_taken = "nobody has it open", False
    while True:
        answer = exchange.read_answer(files, path, id)
        if answer is not None:
            return answer
        now_ms = clock.monotonic_ms()
        if now_ms >= own_ms:
            owner = _try_to_own(runtime, path) or owner
            own_ms = clock.monotonic_ms() + _OWN_LOOK_MS
            continue
        if now_ms - began_ms >= timeout_ms:
            if is_taken:
                raise TimedOut(
                    f"{path}: the owner took the commit {id} and did not answer for {timeout_ms} "
                    "ms; it may still be made. To commit the same version of the application again "
                    f"is safe. {owner}"
                )
            if exchange.withdraw(files, path, id):
                raise TimedOut(
                    f"{path}: nobody took the commit {id} for {timeout_ms} ms, and it was "
                    "withdrawn. The owner must give its duties time: open it with "
                    f"background=True, or let it listen. {owner}"
                )
            is_taken, began_ms = True, now_ms
        runtime.scheduler.wait(Pending(), _LOOK_MS)


def _try_to_own(runtime: Runtime, path: str) -> str:
    """Own the directory if it has no owner and belongs to a single broker, and adopt its inbox.

    Return "" if the inbox was adopted, else the reason why not.
    """
    from embedlog.cluster.cluster import Cluster
    from embedlog.cluster.layout import refuse_one_of_several

    try:
        refuse_one_of_several(runtime.files, path)
    except ConfigError as error:
        return str(error)
    try:
        cluster = Cluster(path, guest_settings(runtime, path), waits_for_committer=False)
    except DirectoryLocked as error:
        return str(error)
    with closing(cluster):
        cluster.adopt_staged()
    return ""


def guest_settings(runtime: Runtime, path: str) -> dict[str, str]:
    """Return settings for a broker that opens another program's directory for a moment.

    Retention is off: the broker does not know the program's settings, and must not remove records
    that the program would keep in topics without their own retention.
    """
    node_id = node_id_of(runtime, path)
    return _KEEPING_ALL if node_id is None else {**_KEEPING_ALL, "node.id": node_id}
