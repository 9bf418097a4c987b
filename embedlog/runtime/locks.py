"""Every lock of this package, and the one order in which a thread may take them.

A thread that holds a lock waits only for locks further down the table, so threads cannot wait for
each other in a ring. A thread may take a re-entrant lock again. It may try a lock without waiting
at any time; the lock counts as held afterwards.

If `EMBEDLOG_CHECK_LOCKS` names a directory, every lock checks the order (see `lock_order`); the
tests run so. Otherwise the locks are the interpreter's own, at no cost.
"""

from __future__ import annotations

import os
from _thread import LockType, RLock, allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from embedlog.runtime.lock_order import LockOrder

    L = TypeVar("L", LockType, RLock)


class Rank:
    """The order of the locks, outermost first. Each text names the state that the lock guards, and
    the locks that a thread may take while it holds the lock ("under it").

    A *leaf* is a lock under which a thread takes no other lock. A rank without "Under it" allows
    every lock further down the table.
    """

    REGISTRY = 8
    """Guards the subjects and schemas of the test kit's schema registry, and the start of its
    server. Under it: the threads of the HTTP server."""
    MOVED_CLOCK = 9
    """Guards a jump of a test's clock: one jump at a time. Under it: every lock of a duty."""
    QUEUE_PARTS = 6
    """Guards the making of a queue's parts on their first use. Under it: every lock of a client."""
    LOOP = 10
    """Guards the loop of a thread, which holds the lock while it loops. Threads only try the lock
    and never wait for it. Under it: every lock."""
    ADMIN = 11
    """Guards an admin client: one call at a time. Under it: the locks of a call to the broker."""
    CONSUMER = 12
    """Guards a consumer's state. The user, and the duty that keeps the membership alive, change it.
    Under it: the locks of a call to the broker and, if no other thread drives, of the
    scheduler's duties."""
    RUNNING = 13
    """Guards the running of duties: the scheduler's duties never run side by side. The driving
    thread only tries the lock and never waits for it. Under it: every lock of a duty."""
    DRIVER = 14
    """Guards a producer's state machine: one pass at a time. Under it: the locks of a call to the
    broker and, in a user's callback, the locks of the user's calls."""
    ACCUMULATOR = 15
    """Guards a producer's queues. Under it: leaves only."""
    COMMIT_INBOX = 17
    """Guards the creation of the part that commits staged files, and of its thread."""
    ADOPTION = 18
    """Guards the commits of staged files: one at a time. Under it: locks for loading a topic's
    logs, several partitions of the commit, and locks of waiting fetches."""
    CATCHING_UP = 20
    """Guards the group coordinator's queue of metadata changes. Under it: shards, and the
    operations that wait for the commits of shards."""
    OPERATION = 21
    """Guards one delayed operation: one thread at a time checks its condition. Under it: the
    partitions and the fetch session that the condition is about."""
    SHARD = 22
    """Guards one coordinator shard. Under it: the partition that the shard writes to."""
    FETCH_SESSION = 23
    """Guards one fetch session's partitions. Under it: the cache of sessions."""
    FETCH_SESSIONS = 24
    """Guards the cache of fetch sessions. A leaf."""
    SHARE_SESSIONS = 25
    """Guards the share sessions, and the table of share partitions. A leaf."""
    SHARE_PARTITION = 26
    """Guards the deliveries of a partition to a share group. Under it: the timer of their locks."""
    PRODUCER_IDS = 30
    """Guards the block of unused producer ids. Under it: the controller, which gives out the next
    block."""
    CONTROLLER = 31
    """Guards the cluster's metadata while a change is checked, written and published. Under it: the
    locks with which the broker applies the change."""
    METADATA_FEED = 32
    """Guards the metadata changes on their way to one broker of several. Under it: the locks with
    which that broker applies them."""
    PUBLISHER = 33
    """Guards the list of partitions that this broker hosts. Under it: the log manager and
    partitions."""
    BROKER = 34
    """Guards the creation of a broker's parts on their first use."""
    SHARDS = 35
    """Guards the table of a coordinator's shards. A leaf."""
    MARKERS = 36
    """Guards the list of decided transactions that still have to write markers. A leaf."""
    RELOCATION = 38
    """Guards the moves of logs between data directories: one slice of bytes is copied at a time.
    Under it: DATA_DIRECTORIES."""
    DATA_DIRECTORIES = 39
    """Guards the table of logs by data directory. Under it: the log managers of both directories of
    a move."""
    CLEANER = 40
    """Guards compaction: one slice of the work runs at a time. Under it: partitions."""
    LOG_MANAGER = 41
    """Guards the table of logs while a log is opened, made, deleted or reconfigured. Under it:
    partitions."""
    PARTITION = 42
    """Guards one log's writes and its leadership. Under it: the log's syncs and the checkpoints."""
    SYNC = 43
    """Guards one log's syncs: one of the waiting threads syncs for all of them."""
    CHECKPOINTS = 44
    """Guards the checkpoints: the files with the offsets of all logs."""
    FETCHERS = 45
    """Guards the lists of partitions that fetchers begin or stop following. A leaf."""
    IN_SYNC = 46
    """Guards the list of proposed in-sync sets that the controller has not answered. A leaf."""
    PREFERRED = 47
    """Guards the directories chosen for logs that do not exist yet. A leaf."""
    QUEUE = 48
    """Guards the jobs that a queue has at hand, and the choice of the thread that fetches more. A
    leaf."""
    PURGATORY = 50
    """Guards the lists of waiting operations by key."""
    TIMER = 51
    """Guards one timer's tasks."""
    PARTITION_DUTY = 52
    """Guards the list of partitions that have work for the driving thread."""
    SCHEDULER = 53
    """Guards the due times of duties, and the list of waiting threads."""
    DUTY_THREAD = 54
    """Guards the start and the end of a duty's own thread."""
    NEWS = 55
    """Guards the list of threads that wait for a producer's passes, and the start of the producer's
    thread."""
    NETWORK = 56
    """Guards the messages that the links between brokers keep. A leaf."""
    FAULT_RULES = 57
    """Guards the list of a test's fault rules, while they are put before the brokers. A leaf."""
    FAULT_RULE = 58
    """Guards the counters of one fault rule, or the requests that wait because of rules. A leaf."""
    HTTP_WORKERS = 65
    """Guards the threads of the test kit's HTTP server, and their tasks. A leaf."""
    REGISTRY_FAULT = 66
    """Guards the hits of one fault of the schema registry. A leaf."""
    KEPT = 67
    """Guards the objects that the test kit's control door keeps for its clients. A leaf."""
    PENDING = 60
    """Guards the arrival of an answer. Callbacks run after the lock's release."""
    ABORTED = 61
    """Guards the index of aborted transactions of a segment."""
    FILE = 62
    """Guards the copy of a file that is not mapped."""
    LOCK_FILE = 63
    """Guards the table of lock files that this process holds, and the opening of a lock file."""
    SEEKING = 64
    """Guards a file's position from a seek to the read or write after it."""
    WAKER = 70
    """Guards the descriptor that ends a wait for sockets. The lock belongs to `wire`. It has the
    last rank, because a signal handler may take it anywhere."""


RING_FREE = frozenset({Rank.DRIVER})
"""A thread may hold several locks of these ranks. `Driver.run` explains why threads never wait in a
ring."""

SEVERAL_UNDER = {Rank.PARTITION: Rank.ADOPTION, Rank.LOG_MANAGER: Rank.DATA_DIRECTORIES}
"""A thread that holds a lock of a value's rank may hold several locks of the key's rank. Only one
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
    """Return a lock of `rank`. Its holder cannot take it again."""
    if checked_lock is None:
        return allocate_lock()
    lock: LockType = checked_lock(rank, False)
    return lock


def ranked_rlock(rank: int) -> RLock:
    """Return a lock of `rank` that its holder may take again."""
    if checked_lock is None:
        return RLock()
    lock: RLock = checked_lock(rank, True)
    return lock


def process_wide(lock: L) -> L:
    """Return `lock`, and free it in each forked child, where the thread that held it may not
    exist.

    Use it for locks of the whole process. Locks of single objects do not need it: no child uses its
    parent's objects, see `forks`.
    """
    PROCESS_WIDE.append(lock)
    return lock


PROCESS_WIDE: list[Any] = []
"""Locks that a forked child frees: see `process_wide`."""


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
