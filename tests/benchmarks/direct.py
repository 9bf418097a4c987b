"""The direct API against the embedded stores of Python: append and read in one process."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import diskcache
import litequeue
import lmdb
import persistqueue
import queuelib

import embedlog
from tests.benchmarks.table import Row, measure

VALUE = b"v" * 100
BATCH = [VALUE] * 1000
SINGLE_COUNT = 20_000
SLOW_COUNT = 300
DURABLE_COUNT = 200
BATCH_COUNT = 200
READ_COUNT = 1_000_000
BY_RECORD = {"max_poll_records": 1000}  # more records would leave the CPU cache
BY_BATCH = {"max_poll_records": 50_000, "max_partition_fetch_bytes": 16 << 20}


class Folder:
    """A directory for the files of a row, emptied between rounds."""

    def __init__(self, root: Path, name: str) -> None:
        self.path = root / name

    def fresh(self) -> Path:
        """Return an empty directory."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        return self.path


def _embedlog(path: Path, durability: str) -> embedlog.Cluster:
    cluster = embedlog.open(path, durability=durability)
    cluster.admin().create_topics({"t": 1})
    return cluster


def _timed(work: Callable[[], None]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def embedlog_sends(folder: Folder, count: int, durability: str, *, each_acked: bool) -> float:
    """One record a call; `each_acked` waits for every single acknowledgement."""
    with _embedlog(folder.fresh(), durability) as cluster:
        producer = cluster.producer()
        send = producer.send

        def work() -> None:
            if each_acked:
                for _ in range(count):
                    send("t", VALUE).result()
            else:
                for _ in range(count):
                    send("t", VALUE)
                producer.flush()

        return _timed(work)


def embedlog_appends(folder: Folder, count: int, durability: str) -> float:
    """One acknowledged record a call."""
    with _embedlog(folder.fresh(), durability) as cluster:
        append = cluster.producer().append

        def work() -> None:
            for _ in range(count):
                append("t", VALUE)

        return _timed(work)


def embedlog_batches(folder: Folder) -> float:
    """A thousand records a call."""
    with _embedlog(folder.fresh(), "os") as cluster:
        producer = cluster.producer()

        def work() -> None:
            for _ in range(BATCH_COUNT):
                producer.send_batch("t", BATCH)
            producer.flush()

        return _timed(work)


def sqlite_rows(folder: Folder, count: int, synchronous: str) -> float:
    """WAL, one transaction for each row."""
    with sqlite3.connect(folder.fresh() / "db", isolation_level=None) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(f"PRAGMA synchronous={synchronous}")
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB)")

        def work() -> None:
            for _ in range(count):
                db.execute("INSERT INTO t (v) VALUES (?)", (VALUE,))

        return _timed(work)


def sqlite_batches(folder: Folder) -> float:
    """WAL, one transaction for a thousand rows."""
    rows = [(VALUE,)] * 1000
    with sqlite3.connect(folder.fresh() / "db") as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=OFF")
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB)")

        def work() -> None:
            for _ in range(BATCH_COUNT):
                db.executemany("INSERT INTO t (v) VALUES (?)", rows)
                db.commit()

        return _timed(work)


def lmdb_puts(folder: Folder, count: int, *, sync: bool) -> float:
    """One transaction a record."""
    with lmdb.open(str(folder.fresh()), map_size=1 << 30, sync=sync, metasync=sync) as env:

        def work() -> None:
            for number in range(count):
                with env.begin(write=True) as transaction:
                    transaction.put(number.to_bytes(8, "big"), VALUE, append=True)

        return _timed(work)


def lmdb_batches(folder: Folder) -> float:
    """putmulti of a thousand records a transaction."""
    with lmdb.open(str(folder.fresh()), map_size=1 << 30, sync=False, metasync=False) as env:

        def work() -> None:
            for batch in range(BATCH_COUNT):
                items = [
                    (n.to_bytes(8, "big"), VALUE) for n in range(batch * 1000, batch * 1000 + 1000)
                ]
                with env.begin(write=True) as transaction, transaction.cursor() as cursor:
                    cursor.putmulti(items, append=True)

        return _timed(work)


def queuelib_pushes(folder: Folder, count: int) -> float:
    """Its disk FIFO."""
    queue = queuelib.FifoDiskQueue(str(folder.fresh() / "q"))

    def work() -> None:
        for _ in range(count):
            queue.push(VALUE)

    seconds = _timed(work)
    queue.close()
    return seconds


def litequeue_puts(folder: Folder, count: int) -> float:
    """Its `put`."""
    queue = litequeue.LiteQueue(str(folder.fresh() / "q"))

    def work() -> None:
        for _ in range(count):
            queue.put("v" * 100)

    return _timed(work)


def persistqueue_puts(folder: Folder, count: int) -> float:
    """Its sqlite queue."""
    queue = persistqueue.SQLiteQueue(str(folder.fresh()), auto_commit=True)

    def work() -> None:
        for _ in range(count):
            queue.put(VALUE)

    return _timed(work)


def diskcache_appends(folder: Folder, count: int) -> float:
    """Its `Deque`."""
    deque = diskcache.Deque(directory=str(folder.fresh()))

    def work() -> None:
        for _ in range(count):
            deque.append(VALUE)

    return _timed(work)


def append_tables(root: Path) -> None:
    """Print appends one by one, in batches, and durable."""
    f = {name: Folder(root, name) for name in ("e", "s", "l", "q", "lq", "p", "d")}
    many, few, durable = SINGLE_COUNT, SLOW_COUNT, DURABLE_COUNT
    measure(
        "append, one record of 100 B a call, not synced (a record)",
        [
            Row("embedlog", many, lambda: embedlog_sends(f["e"], many, "os", each_acked=False)),
            Row("embedlog, each send().result()", many,
                lambda: embedlog_sends(f["e"], many, "os", each_acked=True)),
            Row("embedlog, append()", many, lambda: embedlog_appends(f["e"], many, "os")),
            Row("lmdb, no sync", many, lambda: lmdb_puts(f["l"], many, sync=False)),
            Row("queuelib", many, lambda: queuelib_pushes(f["q"], many)),
            Row("sqlite, WAL, sync off", many, lambda: sqlite_rows(f["s"], many, "OFF")),
            Row("litequeue", few, lambda: litequeue_puts(f["lq"], few)),
            Row("persist-queue, sqlite", few, lambda: persistqueue_puts(f["p"], few)),
            Row("diskcache.Deque", few, lambda: diskcache_appends(f["d"], few)),
        ],
        ours="embedlog",
    )  # fmt: skip
    total = BATCH_COUNT * 1000
    measure(
        "append, 1,000 records of 100 B a call, not synced (a record)",
        [
            Row("embedlog", total, lambda: embedlog_batches(f["e"])),
            Row("lmdb, putmulti, no sync", total, lambda: lmdb_batches(f["l"])),
            Row("sqlite, executemany, sync off", total, lambda: sqlite_batches(f["s"])),
        ],
        ours="embedlog",
    )
    measure(
        "append, one durable record of 100 B (a record)",
        [
            Row("embedlog, fsync", durable,
                lambda: embedlog_sends(f["e"], durable, "fsync", each_acked=True)),
            Row("embedlog, append(), fsync", durable,
                lambda: embedlog_appends(f["e"], durable, "fsync")),
            Row("sqlite, WAL, FULL", durable, lambda: sqlite_rows(f["s"], durable, "FULL")),
            Row("lmdb, sync", durable, lambda: lmdb_puts(f["l"], durable, sync=True)),
        ],
        ours="embedlog, fsync",
        unit="us",
    )  # fmt: skip


def read_tables(root: Path) -> None:
    """Print a warm sequential scan, to tuples and to columns."""
    cluster = _embedlog(Folder(root, "re").fresh(), "os")
    with cluster.producer() as producer:
        for _ in range(READ_COUNT // 1000):
            producer.send_batch("t", BATCH)
    env = lmdb.open(str(Folder(root, "rl").fresh()), map_size=1 << 30, sync=False)
    with env.begin(write=True) as transaction:
        for number in range(READ_COUNT):
            transaction.put(number.to_bytes(8, "big"), VALUE, append=True)

    def records() -> None:
        with cluster.consumer(**BY_RECORD) as consumer:
            consumer.assign([("t", 0)])
            consumer.seek_to_beginning()
            seen = 0
            while seen < READ_COUNT:
                for _ in consumer.poll(0):
                    seen += 1

    def values() -> None:
        with cluster.consumer(**BY_BATCH) as consumer:
            consumer.assign([("t", 0)])
            consumer.seek_to_beginning()
            seen = 0
            while seen < READ_COUNT:
                for part in consumer.poll_columns(0):
                    seen += len(part.values())

    def columns(**more: object) -> None:
        with cluster.consumer(**BY_BATCH, **more) as consumer:
            consumer.assign([("t", 0)])
            consumer.seek_to_beginning()
            seen = 0
            while seen < READ_COUNT:
                for part in consumer.poll_columns(0):
                    seen += len(part.offsets)

    def tuples() -> None:
        with cluster.consumer(**BY_RECORD) as consumer:
            consumer.assign([("t", 0)])
            consumer.seek_to_beginning()
            seen = 0
            while seen < READ_COUNT:
                for batch in consumer.poll_batches(0):
                    for _ in batch.records:
                        seen += 1

    def scan() -> None:
        with env.begin() as transaction, transaction.cursor() as cursor:
            for _ in cursor:
                pass

    measure(
        f"sequential read of {READ_COUNT:,} x 100 B (a record)",
        [
            Row("embedlog, records", READ_COUNT, records),
            Row("embedlog, tuples", READ_COUNT, tuples),
            Row("embedlog, values", READ_COUNT, values),
            Row("embedlog, columns", READ_COUNT, columns),
            Row("embedlog, columns, check.crcs off", READ_COUNT,
                lambda: columns(check_crcs=False)),
            Row("lmdb, cursor scan", READ_COUNT, scan),
        ],
        ours="embedlog, tuples",
    )  # fmt: skip
    cluster.close()
    env.close()


def main() -> None:
    """Print all tables of the direct API."""
    with tempfile.TemporaryDirectory() as folder:
        append_tables(Path(folder))
        read_tables(Path(folder))
