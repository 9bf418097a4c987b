"""A Kafka broker gets back a directory with commits of jobs.

It ignores our files and deletes none. It refuses our directory among its partitions, as any other:
leftovers of jobs have to go first, and our owner removes them when they are a week old.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.common import TopicPartition
from embedlog.runtime import real_runtime
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log_config import LogConfig
from embedlog.storage.staging.adopter import Adopter, CommitTarget
from embedlog.storage.staging.exchange import tidy
from embedlog.storage.staging.manifest import Manifest, StagedFile
from embedlog.storage.staging.writer import StagedWriter
from embedlog.storage.state_files import staged_layout
from tests.storage.logs import batch
from tests.support.kafka import real_kafka

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PARTITION = TopicPartition("events", 0)
OURS = {staged_layout.COMMIT, f"{staged_layout.COMMIT}.undone", "embedlog-archived-cold"}


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """Kafka's metadata are elsewhere: the directory has logs only."""
    return {"metadata.log.dir": str(tmp_path / "metadata")}


@pytest.fixture
def data(tmp_path: Path, settings: dict[str, str]) -> Path:
    """A directory with a record of Kafka's, a commit of a job, and the file of an archive."""
    with (
        real_kafka(tmp_path, settings=settings) as address,
        embedlog.Producer(address) as producer,
    ):
        producer.send("events", b"theirs", partition=0).result()
    data = tmp_path / "data"
    staged = stage(data, "job", b"ours")
    owner = LogManager(real_runtime(), str(data), LogConfig())
    log = owner.get(PARTITION)
    assert log is not None
    log.offsets.update_high_watermark(log.log_end_offset)
    target = CommitTarget(log, log.epochs.latest)
    adopter = Adopter(real_runtime(), str(data), lambda each: target, renamed_size_min=0)
    adopter.resume()
    done = adopter.adopt(Manifest("job", staged, application="query", version=1))
    assert done is not None
    assert done.ranges == {PARTITION: (1, 2)}
    tidy(real_runtime().files, str(data))  # as a broker does when it ends
    owner.close()
    with embedlog.open_reader(data) as reader:
        reader.publish_archived("cold", {PARTITION: 1})
    return data


def stage(data: Path, job: str, *values: bytes) -> list[StagedFile]:
    files = real_runtime().files
    writer = StagedWriter(files, str(data), job=job, topic_partition=PARTITION, writer="task")
    writer.write(batch(*values))
    return writer.finish()


def ours(data: Path) -> dict[str, bytes]:
    """Return the files that Kafka does not know, and their content."""
    found = [*data.glob("embedlog-*"), *data.glob(f"{staged_layout.EXCHANGE}/**/*")]
    return {str(each.relative_to(data)): each.read_bytes() for each in found if each.is_file()}


def values(address: str) -> list[Any]:
    with embedlog.Consumer(address) as consumer:
        consumer.assign([PARTITION])
        consumer.seek_to_beginning()
        found: list[Any] = []
        while len(found) < 2:
            found += [record.value for record in consumer.poll(1000)]
        return found


def test_kafka_reads_what_was_committed_and_leaves_our_files_alone(
    tmp_path: Path, data: Path, settings: dict[str, str]
) -> None:
    before = ours(data)
    assert set(before) == OURS
    with real_kafka(tmp_path, settings=settings) as address:
        assert values(address) == [b"theirs", b"ours"]
    assert ours(data) == before


def test_kafka_refuses_what_was_staged_and_deletes_nothing_of_it(
    tmp_path: Path, data: Path, settings: dict[str, str]
) -> None:
    stage(data, "left", b"never committed")
    before = ours(data)
    (left,) = set(before) - OURS
    assert left.startswith(f"{staged_layout.EXCHANGE}/{staged_layout.STAGED}/left/")
    refused = pytest.raises(RuntimeError, match="ended with status 1")
    with refused, real_kafka(tmp_path, settings=settings):
        raise AssertionError("Kafka has learnt to mind no directory: say so in the layout")
    assert f"Found directory {data}/{staged_layout.EXCHANGE}" in (tmp_path / "out.log").read_text()
    assert ours(data) == before
    shutil.rmtree(data / staged_layout.EXCHANGE)
    with real_kafka(tmp_path, settings=settings) as address:
        assert values(address) == [b"theirs", b"ours"]
