"""Spark: batch reads and writes of a log beside Spark's Kafka connector and Parquet, `local[2]`.

Further tables: a scrub, and the time of a stream's micro-batch. One session, one log, rounds in
turn. Reads go to Spark's noop sink with all columns; the connector reads from our listener, with
its defaults and with its fastest settings, and from Apache Kafka. "Ready batches" are the least
cost of any source in Python.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import embedlog
from embedlog.spark import register
from embedlog.spark.pipeline.running.spark_session import open_session
from tests.benchmarks.ready import KEY, ReadyDataSource
from tests.support.kafka import real_kafka
from tests.support.tools import has_jars, jar_files

ROUNDS = 5
PARTITIONS = 4
SIZES = ((100, 2_000_000), (1024, 400_000))
"""Bytes of a value, and number of records."""
BATCH_SIZE = 16_384
"""`batch.size` of a producer, Kafka's default."""
RECORD_OVERHEAD = 26
"""Bytes of a record without its value: a key of 16 bytes, and framing."""
MICRO_BATCHES, MICRO_BATCH = 10, 10_000
"""Number of micro-batches of a stream, and records of each."""
KAFKA = "spark-kafka"
TUNED = {
    "kafka.max.poll.records": "10000",
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
}

Frame = Any


def main() -> None:
    base = Path(tempfile.mkdtemp(prefix="benchmark-spark-"))
    jars = {"spark.jars": ",".join(jar_files(KAFKA))} if has_jars(KAFKA) else {}
    if not jars:
        print("Spark's Kafka connector is missing: python -m tests.support.tools spark-kafka")
    spark = open_session(
        "benchmark",
        master="local[2]",
        **{
            "spark.driver.memory": "2g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            **jars,
        },
    )
    register(spark)
    spark.dataSource.register(ReadyDataSource)
    try:
        for size, count in SIZES:
            (base / str(size)).mkdir()
            with _kafka(base / str(size)) as kafka:
                _measure(spark, base / str(size), size, count, kafka, with_kafka=bool(jars))
    finally:
        spark.stop()
        shutil.rmtree(base, ignore_errors=True)


@contextlib.contextmanager
def _kafka(base: Path) -> Iterator[str | None]:
    """Yield the address of a broker of Apache Kafka; None without its jars."""
    if not has_jars("broker"):
        print("Apache Kafka is missing: python -m tests.support.tools broker")
        yield None
        return
    (base / "kafka").mkdir()
    with real_kafka(base / "kafka") as address:
        yield address


def _measure(
    spark: Any, base: Path, size: int, count: int, kafka: str | None, *, with_kafka: bool
) -> None:
    with embedlog.open(base / "log", durability="os") as cluster:
        cluster.create_topic("t", PARTITIONS)
        cluster.create_topic("written", PARTITIONS)
        with cluster.producer(batch_size=BATCH_SIZE, linger_ms=100) as producer:
            _fill(producer, size, count)
        address = cluster.listen("127.0.0.1", 0).address
        ours = _reader(spark, "embedlog", {"path": str(base / "log")})
        server = {"kafka.bootstrap.servers": address}
        for codec in ("none", "zstd"):
            ours().write.mode("overwrite").option("compression", codec).parquet(
                str(base / f"parquet-{codec}")
            )
        reads: dict[str, Callable[[], Frame]] = {"embedlog, directory": ours}
        reads["embedlog, over the wire"] = _reader(spark, "embedlog", server)
        ready = {"count": str(count), "size": str(size)}
        reads["ready batches"] = lambda: spark.read.format("ready").options(**ready).load()
        if with_kafka:
            reads["connector, defaults"] = _reader(spark, "kafka", server)
            reads["connector, tuned"] = _reader(spark, "kafka", {**server, **TUNED})
        if with_kafka and kafka is not None:
            _fill_kafka(kafka, size, count)
            theirs = {"kafka.bootstrap.servers": kafka}
            reads["connector, from Kafka"] = _reader(spark, "kafka", theirs)
            reads["connector, tuned, from Kafka"] = _reader(spark, "kafka", {**theirs, **TUNED})
            reads["embedlog, from Kafka"] = _reader(spark, "embedlog", theirs)
        for codec in ("none", "zstd"):
            reads[f"Parquet, {codec}"] = lambda codec=codec: spark.read.parquet(
                str(base / f"parquet-{codec}")
            )
        _compare(
            f"batch read, {count:,} records of {size} B",
            {name: lambda make=make: _drain(make()) for name, make in reads.items()},
            count,
            ours="embedlog, directory",
        )
        _scrub(spark, base / "log")
        source = spark.read.parquet(str(base / "parquet-none")).select("key", "value")
        writes: dict[str, Callable[[], None]] = {
            "embedlog, directory": lambda: _write(source, "embedlog", {"path": str(base / "log")}),
            "Parquet, none": lambda: (
                source.write.mode("overwrite")
                .option("compression", "none")
                .parquet(str(base / "copy"))
            ),
        }
        if with_kafka:
            writes["connector"] = lambda: _write(source, "kafka", server)
        _compare(
            f"batch write, {count:,} records of {size} B",
            writes,
            count,
            ours="embedlog, directory",
        )
        streams = {"embedlog, directory": ("embedlog", {"path": str(base / "log")})}
        streams["embedlog, over the wire"] = ("embedlog", server)
        if with_kafka:
            streams["connector, defaults"] = ("kafka", server)
            streams["connector, tuned"] = ("kafka", {**server, **TUNED})
        _compare_streams(spark, base, size, streams)


def _scrub(spark: Any, log: Path) -> None:
    """Print how fast a scrub checks every rule and checksum of the log."""
    stored = sum(each.stat().st_size for each in log.glob("t-*/*.log")) / 1e6
    seconds = []
    for number in range(ROUNDS + 1):
        started = time.perf_counter()
        frame = spark.read.format("embedlog").option("path", str(log)).option("table", "findings")
        found = frame.load().count()
        assert not found, f"{found} findings in a log without damage"
        if number:  # the first run warms the JVM up
            seconds.append(time.perf_counter() - started)
    median, best = statistics.median(seconds), min(seconds)
    print(f"\nscrub of {stored:,.0f} MB: median (best) of {ROUNDS}")
    print(f"  {median:.2f} s ({best:.2f})  {stored / median:,.0f} MB/s ({stored / best:,.0f})")


def _compare_streams(
    spark: Any, base: Path, size: int, streams: dict[str, tuple[str, dict[str, str]]]
) -> None:
    """Print the time of a micro-batch, from trigger to trigger, by Spark's own measurement."""
    times: dict[str, list[int]] = {name: [] for name in streams}
    for number in range(3):
        for name, (kind, options) in streams.items():
            checkpoint = base / f"checkpoint-{name}-{number}"
            found = _micro_batches(spark, kind, options, checkpoint)
            if number:  # the first run warms the JVM up
                times[name] += found
    print(
        f"\nmicro-batch, {MICRO_BATCH:,} records of {size} B: median (best) of {MICRO_BATCHES} x 2"
    )
    ours = statistics.median(times["embedlog, directory"])
    for name, found in sorted(times.items(), key=lambda pair: statistics.median(pair[1])):
        median = statistics.median(found)
        print(f"  {name:<30}{median:7.0f} ms ({min(found):5.0f})  {median / ours:6.2f}x")


def _micro_batches(spark: Any, kind: str, options: dict[str, str], checkpoint: Path) -> list[int]:
    """Return the milliseconds of each micro-batch, without the query's first one, which plans."""
    reader = spark.readStream.format(kind).options(**options).option("subscribe", "t")
    reader = reader.option("startingOffsets", "earliest")
    query = (
        reader.option("maxOffsetsPerTrigger", str(MICRO_BATCH))
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    try:
        while sum(each["numInputRows"] > 0 for each in query.recentProgress) <= MICRO_BATCHES:
            if not query.isActive:
                raise RuntimeError(f"{kind}: {query.exception()}")
            time.sleep(0.05)
        told = [each for each in query.recentProgress if each["numInputRows"] > 0]
    finally:
        query.stop()
    return [each["durationMs"]["triggerExecution"] for each in told[1 : MICRO_BATCHES + 1]]


def _fill_kafka(address: str, size: int, count: int) -> None:
    with embedlog.Admin(address) as admin:
        admin.create_topics({"t": PARTITIONS}).check()
    with embedlog.Producer(address, batch_size=BATCH_SIZE, linger_ms=100) as producer:
        _fill(producer, size, count)


def _fill(producer: embedlog.Producer, size: int, count: int) -> None:
    # `send_batch` makes one batch for each partition, whatever `batch.size` is.
    some = PARTITIONS * (BATCH_SIZE // (size + RECORD_OVERHEAD))
    padding = os.urandom(size)
    for first in range(0, count, some):
        numbers = range(first, min(first + some, count))
        values = [b"%016d" % n + padding[16:] for n in numbers]
        producer.send_batch("t", values, keys=[KEY % n for n in numbers])
    producer.flush()


def _reader(spark: Any, name: str, options: dict[str, str]) -> Callable[[], Frame]:
    return lambda: spark.read.format(name).options(**options).option("subscribe", "t").load()


def _drain(frame: Frame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _write(frame: Frame, name: str, options: dict[str, str]) -> None:
    frame.write.format(name).options(**options).option("topic", "written").mode("append").save()


def _compare(title: str, rows: dict[str, Callable[[], None]], count: int, *, ours: str) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in rows}
    for number in range(ROUNDS + 1):
        for name, run in rows.items():
            started = time.perf_counter()
            run()
            if number:  # the first run warms the JVM up
                seconds[name].append(time.perf_counter() - started)
    print(f"\n{title}: median (best) of {ROUNDS}")
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    for name, median in sorted(medians.items(), key=lambda pair: pair[1]):
        ratio = "" if name == ours else f"  {median / medians[ours]:6.2f}x"
        best = min(seconds[name])
        print(f"  {name:<30}{median:7.2f} s ({best:5.2f})  {count / median:12,.0f}/s{ratio}")
