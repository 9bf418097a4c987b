"""Archives of the classes of a JVM (CDS): a start with an archive takes half the CPU time.

    python -m tests.support.class_archives

makes the missing archives. With one, a Kafka broker starts in 1.9 s of CPU time instead of 2.9 s,
and a Spark session in 5 s instead of 8.5 s. Java writes the archive at its end, of the classes that
it has loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.support.jvm import OPTIONS, archive
from tests.support.kafka import real_kafka
from tests.support.tools import ROOT, has_jars, need_jars


def make_archives() -> None:
    """Make the archives that are missing or that this Java cannot use, and print their kinds."""
    for kind, load in _LOADERS.items():
        if not _is_usable(kind):
            print(f"+ archive of the classes of {kind}", flush=True)
            made = archive(kind).with_suffix(f".{os.getpid()}")
            load([*OPTIONS, f"-XX:ArchiveClassesAtExit={made}", "-Xlog:disable"])
            made.replace(archive(kind))


def _is_usable(kind: str) -> bool:
    if kind != "spark" and not has_jars(kind):
        return True  # no test can use it
    path = _spark_class_path() if kind == "spark" else need_jars(kind)
    command = ["java", "-Xshare:on", f"-XX:SharedArchiveFile={archive(kind)}", "-cp", path]
    return not subprocess.run([*command, "-version"], capture_output=True, check=False).returncode


def _spark_class_path() -> str:
    import pyspark

    # Spark's own class path.
    home = Path(pyspark.__file__).parent
    (first,) = (home / "jars").glob("slf4j-api-*.jar")
    return f"{home}/conf:{first}:{home}/jars/*"


def _load_broker(java: list[str]) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        real_kafka(Path(directory), java=java) as address,
    ):
        _use(address)


def _load_tools(java: list[str]) -> None:
    import embedlog

    with embedlog.open() as cluster:
        address = cluster.listen().address
        _use(address)
        subprocess.run(
            ["java", *java, "-cp", need_jars("tools"), "org.apache.kafka.tools.TopicCommand"]
            + ["--bootstrap-server", address, "--describe"],
            check=True,
            capture_output=True,
        )


def _use(address: str) -> None:
    """Send a broker the requests of most tests."""
    import embedlog

    with embedlog.Admin(address) as admin:
        admin.create_topics({"t": 1}).check()
    with embedlog.Producer(address, transactional_id="id") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"value").result()
        producer.commit_transaction()
    with embedlog.Consumer(address, group_id="group", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["t"])
        while not consumer.poll(1):
            pass
        consumer.commit()


def _load_spark(java: list[str]) -> None:
    # Spark's JVM ends after Python, when its standard input closes.
    subprocess.run(
        [sys.executable, "-m", "tests.support.class_archives", "spark"],
        env={**os.environ, "SPARK_SUBMIT_OPTS": " ".join(java), "PYTHONPATH": str(ROOT)},
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _use_spark() -> None:
    import embedlog
    from embedlog.spark.pipeline.kit import session_for_tests

    with tempfile.TemporaryDirectory() as directory, session_for_tests() as spark:
        with embedlog.open(f"{directory}/log") as cluster:
            cluster.create_topic("t", 2)
            with cluster.producer() as producer:
                producer.send("t", b"value", key=b"key").result()
        log = {"path": f"{directory}/log", "subscribe": "t", "startingOffsets": "earliest"}
        frame = spark.read.format("embedlog").options(**log).load()
        frame.groupBy("partition").count().orderBy("partition").toArrow()
        frame.select("key", "value").write.parquet(f"{directory}/table")
        spark.readStream.format("embedlog").options(**log).load().writeStream.foreachBatch(
            lambda batch, _: batch.persist().count()
        ).option("checkpointLocation", f"{directory}/checkpoint").trigger(
            availableNow=True
        ).start().awaitTermination()


_LOADERS: dict[str, Callable[[list[str]], None]] = {
    "broker": _load_broker,
    "tools": _load_tools,
    "spark": _load_spark,
}

if __name__ == "__main__":
    if sys.argv[1:] == ["spark"]:
        _use_spark()
    else:
        make_archives()
