"""Every lock of this package, and the one order in which a thread may take them.

A thread that holds a lock waits only for locks further down the table, so threads cannot wait for
each other in a ring. A thread may take a re-entrant lock again. It may try a lock without waiting
at any time; the lock counts as held afterwards.

If `EMBEDLOG_CHECK_LOCKS` names a directory, every lock checks the order (see `lock_order`); the
tests run so. Otherwise these are the interpreter's own locks, at no cost.
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
    """Places in the order, outermost first, with the guarded state and the locks under each."""

    LOOP = 10
    """A thread's loop, held while it loops. It is only tried. Every lock may be taken under it."""
    ADMIN = 11
    """An admin client's calls. Under it: a call to the broker."""
    CONSUMER = 12
    """A consumer's state, between its user and the duty that keeps its membership alive. Under it:
    a call to the broker and, if no other thread drives, duties of the scheduler."""
    RUNNING = 13
    """Duties of the scheduler, which never run side by side. The driving thread only tries it.
    Under it: every lock of a duty."""
    DRIVER = 14
    """A producer's state machine: one pass at a time. Under it: a call to the broker, and in a
    user's callback the locks of the user's calls."""
    ACCUMULATOR = 15
    """A producer's queues. Under it: leaves only."""
    COMMIT_INBOX = 17
    """Creation of the part that commits staged files, and of its thread."""
    ADOPTION = 18
    """A commit of staged files: one at a time. Under it: locks for loading a topic's logs, several
    partitions of the commit, and locks of waiting fetches."""
    CATCHING_UP = 20
    """The group coordinator's queue of metadata changes. Under it: shards, and operations that wait
    for their commits."""
    OPERATION = 21
    """One delayed operation: one thread at a time checks its condition. Under it, while the
    operation completes: another operation that is tried, and locks for sending the answer."""
    SHARD = 22
    """One coordinator shard. Under it: the partition that it writes to."""
    FETCH_SESSION = 23
    """One fetch session's partitions. Under it: the cache of sessions."""
    FETCH_SESSIONS = 24
    """The cache of fetch sessions. A leaf."""
    PRODUCER_IDS = 30
    """The block of unused producer ids. Under it: the controller, for another block."""
    CONTROLLER = 31
    """The cluster's metadata: check, write, publish. Under it: the broker applies the change."""
    METADATA_FEED = 32
    """Metadata changes on their way to one broker of several. Under it: that broker applies
    them."""
    PUBLISHER = 33
    """The partitions that this broker hosts. Under it: the log manager and partitions."""
    BROKER = 34
    """Creation of parts on their first use."""
    SHARDS = 35
    """The table of a coordinator's shards. A leaf."""
    MARKERS = 36
    """Decided transactions that still have to write markers. A leaf."""
    RELOCATION = 38
    """Moves of logs between data directories: one slice at a time. Under it: DATA_DIRECTORIES."""
    DATA_DIRECTORIES = 39
    """The table of logs by data directory. Under it: the log managers of both directories of a
    move."""
    CLEANER = 40
    """Compaction: one slice at a time. Under it: partitions."""
    LOG_MANAGER = 41
    """The table of logs; opening, making, deleting and reconfiguring one. Under it: partitions."""
    PARTITION = 42
    """One log, for writers, and its leadership. Under it: its syncs and the checkpoints."""
    SYNC = 43
    """One log's syncs: one of the waiting threads syncs for all."""
    CHECKPOINTS = 44
    """The files with the offsets of all logs."""
    FETCHERS = 45
    """Partitions to begin or to stop following. A leaf."""
    IN_SYNC = 46
    """Unanswered proposals to the controller. A leaf."""
    PREFERRED = 47
    """Directories for logs that are not made yet. A leaf."""
    PURGATORY = 50
    """The waiting operations by key."""
    TIMER = 51
    """One timer's tasks."""
    PARTITION_DUTY = 52
    """Partitions with work for the driving thread."""
    SCHEDULER = 53
    """The due times of duties, and the waiting threads."""
    DUTY_THREAD = 54
    """Start and end of a duty's own thread."""
    NEWS = 55
    """Threads that wait for a producer's passes; the start of its thread."""
    NETWORK = 56
    """Messages kept by the links between brokers. A leaf."""
    PENDING = 60
    """The arrival of an answer. Callbacks run after its release."""
    ABORTED = 61
    """The index of aborted transactions of a segment."""
    FILE = 62
    """The copy of a file that is not mapped."""
    LOCK_FILE = 63
    """The table of lock files that this process holds, and the opening of one."""
    SEEKING = 64
    """Held from a seek to the read or write after it."""
    WAKER = 70
    """The descriptor that ends a wait for sockets; the lock belongs to `wire`. It is the last
    rank, because a signal handler may take it anywhere."""


RING_FREE = frozenset({Rank.DRIVER, Rank.OPERATION})
"""A thread may hold several locks of these ranks. `Driver.run` and `DelayedOperation` explain why
no ring can form."""

SEVERAL_UNDER = {Rank.PARTITION: Rank.ADOPTION, Rank.LOG_MANAGER: Rank.DATA_DIRECTORIES}
"""A thread may hold several locks of the first rank while it holds one of the second. Only one
thread at a time can do so."""


def checked_order() -> LockOrder:
    """Return the table above as an order for checked locks."""
    from embedlog.runtime.lock_order import LockOrder

    return LockOrder(vars(Rank), RING_FREE, SEVERAL_UNDER)


checked_lock: Callable[[int, bool], Any] | None = None
"""Factory `(rank, is_reentrant)` of all locks; None for the interpreter's own locks."""
if os.environ.get("EMBEDLOG_CHECK_LOCKS"):
    checked_lock = checked_order().lock


def ranked_lock(rank: int) -> LockType:
    """Return a lock of that rank. Its holder cannot take it again."""
    if checked_lock is None:
        return allocate_lock()
    lock: LockType = checked_lock(rank, False)
    return lock


def ranked_rlock(rank: int) -> RLock:
    """Return a re-entrant lock of that rank."""
    if checked_lock is None:
        return RLock()
    lock: RLock = checked_lock(rank, True)
    return lock


def process_wide(lock: L) -> L:
    """Free the lock in a forked child: its holder may be a thread of the parent only.

    Use it for locks of the whole process. Locks of single objects need it not: no child uses its
    parent's objects, see `forks`.
    """
    PROCESS_WIDE.append(lock)
    return lock


PROCESS_WIDE: list[Any] = []
"""Locks of the whole process."""


def _free_in_child() -> None:
    for lock in PROCESS_WIDE:
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_in_child)


def closed_gate() -> LockType:
    """Return a taken lock without a rank: one thread waits for it, another thread releases it.

    The waiting thread must hold no lock that the releasing thread needs.
    """
    gate = allocate_lock()
    gate.acquire()
    return gate
