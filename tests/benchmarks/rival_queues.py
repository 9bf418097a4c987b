"""The embedded job queues of Python behind one interface: put, get, acknowledge.

| library | durable | not synced | acknowledgement |
|---|---|---|---|
| persist-queue, SQLiteAckQueue | SQLite's default, FULL | no setting: a pragma | a status |
| litequeue | no setting: a pragma | its default, NORMAL | a status |
| huey, SqliteHuey | fsync=True, FULL | fsync=False, OFF | none: a get removes |
| diskcache.Deque | sqlite_synchronous=2, FULL | its default, NORMAL | none: a get removes |

All use SQLite's write-ahead log. A library without acknowledgements loses the jobs of a worker that
dies. Between processes all of them find a new job by polling.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

VALUE = "v" * 100
PRAGMAS = {True: "FULL", False: "OFF"}


class WorkerQueue(NamedTuple):
    """One worker's view of a queue. `get` returns a job that `acknowledge` takes, None for none."""

    put: Callable[[], object]
    get: Callable[[], Any]
    acknowledge: Callable[[Any], object]
    close: Callable[[], object]
    flush: Callable[[], object] = lambda: None
    """Returns once the acknowledgements are stored."""


class Rival(NamedTuple):
    """A library. `open(path, durable)` returns a queue for one worker.

    `is_shared`: the threads of a process share one object.
    """

    name: str
    open: Callable[[Path, bool], WorkerQueue]
    is_shared: bool


def _persist_queue(path: Path, durable: bool) -> WorkerQueue:
    from persistqueue import Empty, SQLiteAckQueue

    queue = SQLiteAckQueue(str(path), multithreading=True, auto_resume=False, timeout=60.0)
    for connection in (queue._getter, queue._putter):
        connection.execute(f"PRAGMA synchronous={PRAGMAS[durable]}")

    def get() -> Any:
        try:
            return queue.get(block=False, raw=True)
        except Empty:
            return None

    return WorkerQueue(
        lambda: queue.put(VALUE), get, lambda job: queue.ack(id=job["pqid"]), queue.close
    )


def _litequeue(path: Path, durable: bool) -> WorkerQueue:
    from litequeue import LiteQueue

    queue = LiteQueue(path / "queue.db", timeout=60)
    if durable:
        queue.conn.execute("PRAGMA synchronous=FULL")
    return WorkerQueue(
        lambda: queue.put(VALUE), queue.pop, lambda job: queue.done(job.message_id), queue.close
    )


def _huey(path: Path, durable: bool) -> WorkerQueue:
    from huey import SqliteHuey

    huey = SqliteHuey(
        filename=str(path / "huey.db"), fsync=durable, results=False, timeout=60, strict_fifo=True
    )

    @huey.task()  # type: ignore[untyped-decorator]
    def work(value: str) -> int:
        return len(value)

    return WorkerQueue(lambda: work(VALUE), huey.dequeue, huey.execute, huey.storage.close)


def _diskcache(path: Path, durable: bool) -> WorkerQueue:
    from diskcache import Cache, Deque

    cache = Cache(
        str(path),
        eviction_policy="none",
        sqlite_synchronous=2 if durable else 1,
        timeout=60,
    )
    deque = Deque.fromcache(cache)

    def get() -> Any:
        try:
            return deque.popleft()
        except IndexError:
            return None

    return WorkerQueue(lambda: deque.append(VALUE), get, lambda _: None, cache.close)


RIVALS = (
    Rival("persist-queue, SQLiteAckQueue", _persist_queue, is_shared=True),
    Rival("litequeue", _litequeue, is_shared=False),
    Rival("huey, SqliteHuey", _huey, is_shared=True),
    Rival("diskcache.Deque", _diskcache, is_shared=True),
)
