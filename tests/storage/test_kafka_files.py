"""Kafka's own tools read our files, and we open the files of a Kafka broker."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import embedlog
from embedlog.cli import main
from embedlog.common import TopicPartition
from embedlog.runtime import real_runtime
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log_config import LogConfig
from embedlog.storage.verification.directory import DirectoryCheck
from tests.storage.logs import NOW, append, append_marker, check, values
from tests.support.kafka import real_kafka
from tests.support.tools import need_jars

pytestmark = pytest.mark.interop

PARTITION = TopicPartition("events", 0)


def test_kafkas_dump_tool_finds_nothing_wrong_with_our_files(tmp_path: Path) -> None:
    jars = need_jars("tools")
    config = LogConfig(segment_bytes=2000, index_interval_bytes=200)
    owner = LogManager(real_runtime(), f"{tmp_path}/data", config)
    log = owner.get_or_create(PARTITION, topic_id=bytes(range(16)))
    for number in range(30):
        append(log, b"%d" % number * 10, timestamps=NOW + number % 7, epoch=number // 10)
        append(log, b"t", producer=(number, 0, 0), transactional=True, epoch=number // 10)
        append_marker(log, number, committed=number % 2 == 0)
    owner.close()
    folder = tmp_path / "data" / str(PARTITION)
    suffixes = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    files = sorted(str(path) for path in folder.iterdir() if path.suffix in suffixes)
    dump = ["java", "-cp", jars, "org.apache.kafka.tools.DumpLogSegments"]
    shown = _run([*dump, "--deep-iteration", "--files", ",".join(files)])
    assert shown.count("baseOffset:") == log.log_end_offset
    assert shown.count("isvalid: true") == log.log_end_offset
    assert shown.count("lastStableOffset:") == 15
    assert "producerId: 29 producerEpoch: 0" in shown
    for complaint in ("Mismatches", "not found", "should be", "isvalid: false", "Exception"):
        assert complaint not in shown
    indexes = [path for path in files if path.endswith("index") and "txn" not in path]
    sane = _run([*dump, "--index-sanity-check", "--files", ",".join(indexes)])
    assert sane.count("passed sanity check") == len(indexes)


def _run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.parametrize("clean", [True, False])
def test_a_log_directory_that_kafka_wrote_opens_with_all_its_records(
    tmp_path: Path, clean: bool
) -> None:
    need_jars("broker")
    import confluent_kafka

    sent = [b"value-%d" % number for number in range(500)]
    with real_kafka(tmp_path) as address:
        settings = {"bootstrap.servers": address, "transactional.id": "t", "linger.ms": 5}
        producer = confluent_kafka.Producer(settings)
        producer.init_transactions()
        for start in range(0, len(sent), 100):
            producer.begin_transaction()
            for value in sent[start : start + 100]:
                producer.produce("events", value, partition=0)
            if start == 200:
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    data = tmp_path / "data"
    if not clean:
        (data / ".kafka_cleanshutdown").unlink()
    assert list(DirectoryCheck(real_runtime().files, str(data), lambda size: None).findings()) == []
    assert main(["verify", str(data)]) == 0
    with embedlog.open_reader(data) as reader:
        part = reader.partition("events", 0)
        seen = part.records(isolation_level="read_committed")
        assert [record.value for record in seen] == sent[:200] + sent[300:]
    owner = LogManager(real_runtime(), str(data), LogConfig())
    assert owner.directory.clean is clean
    log = owner.get(PARTITION)
    assert log is not None
    assert log.failure is None
    log.offsets.update_high_watermark(log.log_end_offset)
    check(log)
    assert log.topic_id is not None
    assert [value for value in values(log) if value and value.startswith(b"value")] == sent
    aborted = log.transactions.aborted(0, log.log_end_offset)
    assert len(aborted) == 1
    assert aborted[0].last_offset - aborted[0].first_offset == 100
    assert len(list(log.transactions.producers)) == 1
    end = log.log_end_offset
    assert append(log, b"ours", epoch=log.epochs.latest) == end
    check(log)
    owner.close()
