"""Spark's memory and time by the size of a log: a scrub, a streaming count, an archive; `local[2]`.

    python -m tests.benchmarks scale
    python -m tests.benchmarks.scale --records 1000000,10000000,100000000 [--size 100]

Each measurement has a driver of its own, which is warmed up with a small log. Time should grow with
the log, and memory should not: workers read batch by batch.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import embedlog
from embedlog.runtime import real_runtime
from embedlog.spark.committer import commit
from embedlog.spark.sink.options import SinkOptions
from embedlog.spark.sink.task import StagingTask
from embedlog.storage.staging.exchange import discard
from embedlog.storage.staging.manifest import Manifest, StagedFile
from embedlog.storage.state_files import staged_layout
from tests.support.process_tree import Peak, Watch, cpu_seconds

RECORDS = (1_000_000, 10_000_000)
SIZE = 100
"""Bytes of a record on disk, in total."""
PARTITIONS = 4
BATCH_SIZE = 16_384
BLOCK = 1_000_000
"""Records of one commit: a segment in each partition."""
SLICE = 50_000
WARM_COUNT = 10_000
OVERHEAD = 25
"""Bytes of a record without its value: a key of 16 digits, and framing."""
KINDS = ("driver JVM", "driver Python", "worker")


class Result(NamedTuple):
    """Time of one driver, and memory of its processes."""

    seconds: float
    cpu_seconds: float
    """CPU time of all processes, which a busy machine changes little."""
    value: int
    """Findings of a scrub, or records of a count."""
    peaks: dict[str, Peak]


def fill(path: Path, count: int, size: int = SIZE) -> int:
    """Make a log of `count` records in the topic t, and return its bytes.

    Each block of records has the keys, values and timestamps of the block before, with its own
    offsets: batches are encoded once.
    """
    with embedlog.open(path, durability="os") as cluster:
        cluster.create_topic("t", PARTITIONS, config={"retention.ms": "-1"})
    block = _stage(path, min(count, BLOCK), size)
    for number in range(count // BLOCK):
        _commit(path, [_copy(path, each, f"copy-{number}") for each in block])
    if count < BLOCK:
        _commit(path, block)
    elif count % BLOCK:
        _commit(path, _stage(path, count % BLOCK, size))
    discard(real_runtime().files, str(path), f"block-{BLOCK}")
    return sum(each.stat().st_size for each in path.glob("t-*/*.log"))


def _stage(path: Path, count: int, size: int) -> list[StagedFile]:
    options = SinkOptions(path=str(path), servers="", topic="t", batch_size=BATCH_SIZE)
    slices = [range(count)[at : at + SLICE] for at in range(0, count, SLICE)]
    return StagingTask(options, f"block-{count}").write(_rows(each, size) for each in slices)


def _copy(path: Path, staged: StagedFile, job: str) -> StagedFile:
    topic_partition = staged.topic_partition
    name = f"{job}/{topic_partition.partition}"
    base = Path(staged_layout.part(str(path), staged_layout.STAGED))
    (base / job).mkdir(exist_ok=True)
    shutil.copyfile(base / staged.path, base / name)
    return StagedFile(topic_partition, name, size=staged.size, count=staged.count)


def _commit(path: Path, files: list[StagedFile]) -> None:
    commit(str(path), Manifest(os.urandom(16).hex(), files))


def _rows(numbers: range, size: int) -> pa.RecordBatch:
    ids = np.arange(numbers.start, numbers.stop)
    texts = np.char.zfill(ids.astype("S16"), 16)
    value_size = max(1, size - OVERHEAD)
    padding = np.frombuffer(os.urandom(value_size), np.uint8)
    values = np.tile(padding, (len(ids), 1))
    width = min(16, value_size)
    values[:, :width] = texts.view(np.uint8).reshape(len(ids), 16)[:, 16 - width :]
    column = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(value_size), len(ids), [None, pa.py_buffer(values.tobytes())]
    )
    columns = {
        "key": pa.array(texts.tolist(), pa.binary()),
        "value": column.cast(pa.binary()),
        "partition": pa.array((ids // 100 % PARTITIONS).astype(np.int32)),
    }
    return pa.record_batch(columns)


def measure(kind: str, path: Path, work: Path, *arguments: object) -> Result:
    """Run one of `RUNS` in a driver of its own."""
    warm = work / "warm"
    if not warm.exists():
        fill(warm, WARM_COUNT)
    command = [sys.executable, "-m", "tests.benchmarks.scale", "--run", kind]
    command += [str(path), str(warm), str(work), *map(str, arguments)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver,
        Watch(driver.pid, lambda pid, name: _kind(driver.pid, pid, name)) as watch,
    ):
        assert driver.stdout is not None
        said = driver.stdout.read().splitlines()
        status = driver.wait()
    if status or not said:
        raise RuntimeError(f"{kind} of {path} ended with {status}")
    found = json.loads(said[-1])
    return Result(found["seconds"], found["cpu_seconds"], found["value"], watch.peaks)


def _kind(driver: int, pid: int, name: str) -> str:
    if pid == driver:
        return KINDS[1]
    if name.startswith("python"):
        return KINDS[2]
    # A command that the JVM is about to start has the JVM's memory for a moment; it is no worker.
    return KINDS[0] if name == "java" else "command"


# Work of a driver


def scrub(spark: Any, path: str, _work: str, *_: str) -> int:
    """Check every rule of every file with its checksums; return the number of findings."""
    frame = spark.read.format("embedlog").option("path", path).option("table", "findings").load()
    return int(frame.count())


def stream(spark: Any, path: str, work: str, per_trigger: str) -> int:
    """Count all records by a stream, in batches of `per_trigger`; return the count."""
    counts: dict[int, int] = {}

    def keep(frame: Any, _batch: int) -> None:
        counts.update((row["partition"], row["count"]) for row in frame.collect())

    read = spark.readStream.format("embedlog").option("path", path).option("subscribe", "t")
    read = read.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", per_trigger)
    with tempfile.TemporaryDirectory(dir=work) as checkpoint:
        query = (
            read.load()
            .groupBy("partition")
            .count()
            .writeStream.outputMode("complete")
            .foreachBatch(keep)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return sum(counts.values())


def archive(spark: Any, path: str, work: str, *_: str) -> int:
    """Archive everything to a Parquet table, in commits of the job's default size; return the
    number of records.
    """
    from embedlog.spark.jobs.archive import archive as to_table
    from embedlog.spark.jobs.topics import Topics

    with tempfile.TemporaryDirectory(dir=work) as table:
        return int(to_table(spark, Topics(("t",), path), table).counts["records"])


RUNS: dict[str, Callable[..., int]] = {"scrub": scrub, "stream": stream, "archive": archive}


def _drive(kind: str, path: str, warm: str, work: str, *arguments: str) -> None:
    from embedlog.spark.pipeline.running.spark_session import open_session

    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": work,
        "spark.sql.warehouse.dir": work,
    }
    spark = open_session("scale", master="local[2]", **settings)
    RUNS[kind](spark, warm, work, *arguments)
    started, before = time.perf_counter(), cpu_seconds(os.getpid())
    value = RUNS[kind](spark, path, work, *arguments)
    seconds, used = time.perf_counter() - started, cpu_seconds(os.getpid()) - before
    spark.stop()
    print(json.dumps({"seconds": seconds, "cpu_seconds": used, "value": value}), flush=True)


# The table


def compare(counts: tuple[int, ...], size: int, per_trigger: int) -> None:
    """Measure logs of these sizes, one after the other, and print the results."""
    rates: dict[str, float] = {}
    for count in counts:
        with tempfile.TemporaryDirectory(prefix="benchmark-scale-") as directory:
            work = Path(directory)
            started = time.perf_counter()
            stored = fill(work / "log", count, size)
            print(f"\n{count:,} records, {stored / 1e6:,.0f} MB, ", end="")
            print(f"written in {time.perf_counter() - started:.1f} s")
            print(f"  plain read of the files: {stored / 1e6 / _plain(work / 'log'):,.0f} MB/s")
            for kind, arguments in (("scrub", ()), ("stream", (per_trigger,)), ("archive", ())):
                result = measure(kind, work / "log", work, *arguments)
                expected = 0 if kind == "scrub" else count
                assert result.value == expected, (kind, result.value, expected)
                _show(kind, result, count, stored, rates)


def _plain(path: Path) -> float:
    started = time.perf_counter()
    buffer = bytearray(1 << 20)
    for each in sorted(path.glob("t-*/*.log")):
        with each.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return time.perf_counter() - started


def _show(kind: str, result: Result, count: int, stored: int, rates: dict[str, float]) -> None:
    seconds, used = result.seconds, result.cpu_seconds
    linear = ""
    for what, rate in (("time", seconds / count), ("CPU", used / count)):
        name = f"{kind}: {what}"
        if name in rates:
            linear += f"  {rate / rates[name]:5.2f}x {what} a record"
        rates.setdefault(name, rate)
    print(
        f"  {kind:<8}{seconds:8.2f} s {count / seconds:14,.0f} records/s"
        f"{stored / 1e6 / seconds:8,.0f} MB/s{used:8.2f} CPU s{linear}"
    )
    for name in KINDS:
        own, resident, together = (each / 1e6 for each in result.peaks.get(name, Peak(0, 0, 0)))
        print(
            f"    {name:<14}{own:6,.0f} MB of its own, {resident:6,.0f} with mapped files; "
            f"all together {together:6,.0f} of their own"
        )
    sys.stdout.flush()


def main() -> None:
    compare(RECORDS, SIZE, BLOCK)


def _arguments() -> None:
    if sys.argv[1:2] == ["--run"]:
        _drive(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description="Spark's memory and time by the size of a log.")
    parser.add_argument("--records", default=",".join(map(str, RECORDS)), help="sizes, with commas")
    parser.add_argument("--size", type=int, default=SIZE, help="bytes of a record")
    parser.add_argument("--per-trigger", type=int, default=BLOCK, help="records of a micro-batch")
    given = parser.parse_args()
    counts = tuple(int(each) for each in given.records.split(","))
    compare(counts, given.size, given.per_trigger)


if __name__ == "__main__":
    _arguments()
