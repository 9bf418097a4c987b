"""Every lock of this package, and the one order in which a thread may take them.

A thread that holds a lock waits for locks further down the table only, so no ring of waiting
threads can come about. A lock that a thread holds it may take again, if it is re-entrant. A lock
that is only tried, and not waited for, may be tried at any time; it counts as held afterwards.

Where `EMBEDLOG_CHECK_LOCKS` names a directory, every lock checks this, see `lock_order`: the tests
run so. Otherwise these are the interpreter's own locks, at no cost.
"""

from __future__ import annotations

import os
from _thread import RLock, allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable
    from typing import Any, TypeVar

    from embedlog.runtime.lock_order import LockOrder

    L = TypeVar("L", LockType, RLock)


class Rank:
    """A lock's place in the order, the outermost first: what it guards, what is taken under it."""

    LOOP = 10
    """A thread's loop, held for as long as it loops. Only tried. Everything is taken under it."""
    ADMIN = 11
    """An admin client's calls. Under it a call to the broker."""
    CONSUMER = 12
    """A consumer's state, between its user and the duty that keeps its membership alive. Under it
    a call to the broker, and where nobody else drives, duties of the scheduler."""
    RUNNING = 13
    """Duties of the scheduler: they never run side by side. Whoever drives only tries it. Under it
    whatever a duty takes."""
    DRIVER = 14
    """A producer's state machine: one pass at a time. Under it a call to the broker, and in a
    user's callback whatever that uses."""
    ACCUMULATOR = 15
    """A producer's queues. Under it nothing but leaves."""
    COMMIT_INBOX = 17
    """The making of what adopts staged files, and of its thread."""
    ADOPTION = 18
    """Taking in what other processes have staged: one commit at a time. Under it what loads a
    topic's logs, the partitions of a commit, several at once, and what waiting readers take."""
    CATCHING_UP = 20
    """The group coordinator's queue of changes of the metadata. Under it shards, and
    operations that wait for their commits."""
    OPERATION = 21
    """One delayed operation: its condition is checked by one thread at a time. Under it, while the
    operation completes, another one that is tried, and all that answering takes."""
    SHARD = 22
    """One coordinator shard. Under it the partition that it writes to."""
    FETCH_SESSION = 23
    """One fetch session's partitions. Under it the cache of sessions."""
    FETCH_SESSIONS = 24
    """The cache of fetch sessions. A leaf."""
    PRODUCER_IDS = 30
    """The block that producer ids are given from. Under it the controller, for another block."""
    CONTROLLER = 31
    """The cluster's metadata: check, write, publish. Under it the broker follows the change."""
    METADATA_FEED = 32
    """The changes of the metadata that one broker of several has yet to hear of. Under it that
    broker follows them."""
    PUBLISHER = 33
    """What this broker hosts. Under it the log manager and partitions."""
    BROKER = 34
    """The making of parts that are made when first asked for."""
    SHARDS = 35
    """Which shards a coordinator has. A leaf."""
    MARKERS = 36
    """The decided transactions whose partitions have not been told. A leaf."""
    RELOCATION = 38
    """Moves of logs between data directories: one slice at a time. Under it which directory a log
    lies in."""
    DATA_DIRECTORIES = 39
    """Which of several data directories a log lies in. Under it their log managers, both of those
    that a log moves between."""
    CLEANER = 40
    """Compaction: one slice at a time. Under it partitions."""
    LOG_MANAGER = 41
    """Which logs there are: one is opened, made, deleted or reconfigured. Under it partitions."""
    PARTITION = 42
    """One log, for writers, and who leads it. Under it its syncs and the checkpoints."""
    SYNC = 43
    """One log's syncs: of those that wait for one, one does it for all."""
    CHECKPOINTS = 44
    """The files with the offsets of all logs."""
    FETCHERS = 45
    """The partitions that are to be followed, or no more. A leaf."""
    IN_SYNC = 46
    """The proposals to the controller that were not answered. A leaf."""
    PREFERRED = 47
    """The directories that logs are to be made in. A leaf."""
    PURGATORY = 50
    """Which operations wait for which key."""
    TIMER = 51
    """One timer's tasks."""
    PARTITION_DUTY = 52
    """The partitions that were left for the thread that drives."""
    SCHEDULER = 53
    """When each duty is due, and which threads wait."""
    DUTY_THREAD = 54
    """A duty's own thread: it starts and ends."""
    NEWS = 55
    """The threads that wait for a producer's passes; the start of the thread that makes them."""
    NETWORK = 56
    """What the links between brokers keep. A leaf."""
    PENDING = 60
    """An answer that arrives. Callbacks run after its release."""
    ABORTED = 61
    """The index of aborted transactions of a segment."""
    FILE = 62
    """What was read of a file that is not mapped."""
    LOCK_FILE = 63
    """The files that lock a directory: one is opened where no other of this process holds it."""
    SEEKING = 64
    """Between a seek and what follows it."""
    WAKER = 70
    """The descriptor that ends a wait for sockets; the lock is wire's own. The very last, as a
    signal handler may take it anywhere."""


RING_FREE = frozenset({Rank.DRIVER, Rank.OPERATION})
"""Ranks of which a thread may hold several; `Driver.run` and `DelayedOperation` say why that is no
ring."""

SEVERAL_UNDER = {Rank.PARTITION: Rank.ADOPTION, Rank.LOG_MANAGER: Rank.DATA_DIRECTORIES}
"""Ranks of which a thread may hold several while it holds the other one: no other thread does, so
two never wait for each other."""


def checked_order() -> LockOrder:
    """The table above, for locks that check it."""
    from embedlog.runtime.lock_order import LockOrder

    return LockOrder(vars(Rank), RING_FREE, SEVERAL_UNDER)


checked_lock: Callable[[int, bool], Any] | None = None
"""Makes every lock, of a rank and re-entrant or not; None: they are the interpreter's own."""
if os.environ.get("EMBEDLOG_CHECK_LOCKS"):
    checked_lock = checked_order().lock


def ranked_lock(rank: int) -> LockType:
    """A lock of that rank, which the thread that holds it cannot take again."""
    if checked_lock is None:
        return allocate_lock()
    lock: LockType = checked_lock(rank, False)
    return lock


def ranked_rlock(rank: int) -> RLock:
    """A lock of that rank, which the thread that holds it may take again."""
    if checked_lock is None:
        return RLock()
    lock: RLock = checked_lock(rank, True)
    return lock


def process_wide(lock: L) -> L:
    """Let a forked child find the lock free: a thread that held it is not in the child.

    For those that every object of the process shares. What belongs to one object is the parent's,
    and no child uses it: see `forks`.
    """
    PROCESS_WIDE.append(lock)
    return lock


PROCESS_WIDE: list[Any] = []
"""The locks that every object of the process shares."""


def _free_in_child() -> None:
    for lock in PROCESS_WIDE:
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_in_child)


def closed_gate() -> LockType:
    """A lock without a rank, taken already: one thread waits for it, another opens it.

    Nobody holds it. What a thread holds while it waits there must not be needed to open it.
    """
    gate = allocate_lock()
    gate.acquire()
    return gate
