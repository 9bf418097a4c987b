"""Kafka's own Java tools work against embedlog: topics, console clients, configs, offsets, dirs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import embedlog
from embedlog.broker.context import RequestContext
from tests.golden.requests import produce
from tests.golden.transaction_requests import batch
from tests.interop.clients import Row
from tests.interop.clients.confluent import Confluent
from tests.interop.java_tools import run
from wire.api_keys import ApiKey

pytestmark = pytest.mark.interop

NewName = Callable[[str], str]


def test_topics_are_created_listed_described_altered_and_deleted(
    address: str, new_name: NewName
) -> None:
    topic = new_name("java-topic")
    to = ("--bootstrap-server", address)
    made = run("topics", *to, "--create", "--topic", topic, "--partitions", "3",
               "--config", "retention.ms=60000")  # fmt: skip
    assert f"Created topic {topic}." in made
    assert topic in run("topics", *to, "--list").split()
    described = run("topics", *to, "--describe", "--topic", topic)
    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=60000" in described
    assert re.search(r"Partition: 2\s+Leader: 1\s+Replicas: 1\s+Isr: 1", described)
    run("topics", *to, "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in run("topics", *to, "--describe", "--topic", topic)
    again = run("topics", *to, "--create", "--topic", topic, check=False)
    assert "already exists" in again
    run("topics", *to, "--delete", "--topic", topic)
    assert topic not in run("topics", *to, "--list").split()


def test_the_console_consumer_reads_records_of_the_console_producer(
    address: str, new_name: NewName
) -> None:
    topic = new_name("java-console")
    Confluent().create_topic(address, topic, 2)
    run("console-producer", "--bootstrap-server", address, "--topic", topic,
        "--property", "parse.key=true", "--property", "key.separator=:",
        "--compression-codec", "zstd", data="a:one\nb:two\na:three\n")  # fmt: skip
    seen: list[str] = []
    for partition, count in enumerate(_counts(address, topic)):
        if count:
            seen += run(
                "console-consumer", "--bootstrap-server", address, "--topic", topic,
                "--partition", str(partition), "--offset", "earliest",
                "--max-messages", str(count), "--property", "print.key=true",
                "--property", "print.offset=true", "--timeout-ms", "20000",
            ).splitlines()  # fmt: skip
    rows = sorted(tuple(line.split("\t")[1:]) for line in seen if line.startswith("Offset:"))
    assert rows == [("a", "one"), ("a", "three"), ("b", "two")]


def _counts(address: str, topic: str) -> list[int]:
    out = run("get-offsets", "--bootstrap-server", address, "--topic", topic)
    rows = (line.split(":") for line in out.split() if line.startswith(topic))
    return [int(end) for _, _, end in sorted(rows, key=lambda row: int(row[1]))]


def test_a_java_consumer_reads_every_clients_batch_from_an_offset(
    address: str, new_name: NewName
) -> None:
    topic = new_name("java-offset")
    Confluent().create_topic(address, topic, 1)
    for codec in Confluent.codecs:
        rows = [Row(b"k", f"{codec} {number}".encode()) for number in range(3)]
        Confluent().produce(address, topic, rows, codec=codec)
    out = run("console-consumer", "--bootstrap-server", address, "--topic", topic,
              "--partition", "0", "--offset", "4", "--max-messages", "11",
              "--timeout-ms", "20000")  # fmt: skip
    assert "gzip 1" in out.splitlines()
    assert "zstd 2" in out.splitlines()
    assert "gzip 0" not in out.splitlines()


def test_configs_are_described_altered_and_refused(address: str, new_name: NewName) -> None:
    topic = new_name("java-configs")
    Confluent().create_topic(address, topic, 1)
    entity = ("--bootstrap-server", address, "--entity-type", "topics", "--entity-name", topic)
    run("configs", *entity, "--alter", "--add-config", "retention.ms=5000,cleanup.policy=compact")
    described = run("configs", *entity, "--describe")
    assert "retention.ms=5000" in described
    assert "cleanup.policy=compact" in described
    everything = run("configs", *entity, "--describe", "--all")
    assert "segment.bytes=1073741824" in everything
    run("configs", *entity, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms=5000" not in run("configs", *entity, "--describe")
    refused = run("configs", *entity, "--alter", "--add-config", "retention.ms=x", check=False)
    assert "InvalidConfigurationException" in refused
    broker = ("--bootstrap-server", address, "--entity-type", "brokers", "--entity-name", "1")
    assert "log.retention.hours=168" in run("configs", *broker, "--describe", "--all")


def test_offsets_records_and_directories(address: str, new_name: NewName, tmp_path: Path) -> None:
    topic = new_name("java-offsets")
    Confluent().create_topic(address, topic, 1)
    Confluent().produce(address, topic, [Row(None, b"v", (), 1000 + i) for i in range(5)])
    to = ("--bootstrap-server", address)
    for time, offset in (("earliest", 0), ("latest", 5), ("max-timestamp", 4), ("1002", 2)):
        out = run("get-offsets", *to, "--topic", topic, "--time", time)
        assert f"{topic}:0:{offset}" in out.split()
    wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": 3}], "version": 1}
    (tmp_path / "offsets.json").write_text(json.dumps(wanted))
    done = run("delete-records", *to, "--offset-json-file", str(tmp_path / "offsets.json"))
    assert re.search(r"low_watermark:\s*3", done)
    out = run("get-offsets", *to, "--topic", topic, "--time", "earliest")
    assert f"{topic}:0:3" in out.split()
    listed = run("log-dirs", *to, "--describe", "--topic-list", topic)
    (found,) = [line for line in listed.splitlines() if line.startswith("{")]
    (directory,) = json.loads(found)["brokers"][0]["logDirs"]
    assert directory["partitions"][0]["partition"] == f"{topic}-0"
    assert directory["partitions"][0]["size"] > 0


def test_the_java_client_can_use_the_listed_api_versions(address: str) -> None:
    out = run("broker-api-versions", "--bootstrap-server", address)
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", out)
    assert re.search(r"Fetch\(1\): 0 to 18 \[usable: 18\]", out)
    assert re.search(r"JoinGroup\(11\): 0 to 9 \[usable: 9\]", out)
    assert re.search(r"AddPartitionsToTxn\(24\): 0 to 5 \[usable: 5\]", out)
    assert re.search(r"ShareFetch\(78\): 1 to 2 \[usable: [12]", out)
    assert re.search(r"StreamsGroupHeartbeat\(88\): 0 to 1 \[usable: [01]", out)
    assert "CreateAcls(30): UNSUPPORTED" in out


def test_feature_levels_are_downgraded_and_upgraded() -> None:
    with embedlog.open() as cluster:
        server = ("--bootstrap-server", cluster.listen("127.0.0.1", 0).address)
        feature = ("--feature", "transaction.version=1")
        refused = run("features", *server, "upgrade", *feature, check=False)
        assert "Can't downgrade the version of this feature" in refused
        assert "was downgraded to 1" in run("features", *server, "downgrade", *feature)
        described = run("features", *server, "describe")
        assert re.search(r"transaction.version.*FinalizedVersionLevel: 1", described)
        assert "was upgraded to 2" in run(
            "features", *server, "upgrade", "--feature", "transaction.version=2"
        )


def test_a_java_producer_with_idempotence_and_load(address: str, new_name: NewName) -> None:
    topic = new_name("java-load")
    Confluent().create_topic(address, topic, 1)
    out = run("producer-perf", "--topic", topic, "--num-records", "20000", "--record-size", "100",
              "--throughput", "-1", "--producer-props", f"bootstrap.servers={address}",
              "enable.idempotence=true", "acks=all")  # fmt: skip
    assert "20000 records sent" in out
    assert _counts(address, topic) == [20000]


def test_kafka_dumps_the_files_of_a_closed_directory(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "data") as cluster:
        cluster.admin().create_topics({"dumped": 1}).check()
        with cluster.producer() as producer:
            for number in range(500):
                producer.send("dumped", b"v" * 50, key=b"%d" % number)
    (folder,) = (tmp_path / "data").glob("dumped-0")
    names = sorted(path.name for path in folder.iterdir())
    files = ",".join(str(folder / n) for n in names if n.endswith((".log", "index", ".snapshot")))
    out = run("dump-log", "--deep-iteration", "--print-data-log", "--files", files)
    assert out.count("| offset: ") == 500
    assert "payload: " + "v" * 50 in out
    assert "Found timestamp mismatch" not in out
    assert "Index mismatch" not in out and "isvalid: false" not in out


def test_kafka_dumps_transactions_and_their_states(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "data", transaction_state_log_num_partitions=1) as cluster:
        cluster.create_topic("paid", 1)
        admin = cluster.admin()
        with cluster.producer(transactional_id="till") as producer:
            producer.init_transactions()
            for ends, state in (
                (producer.commit_transaction, "CompleteCommit"),
                (producer.abort_transaction, "CompleteAbort"),
            ):
                producer.begin_transaction()
                producer.send("paid", b"x")
                producer.flush()
                ends()
                while admin.describe_transactions(["till"])["till"].state != state:
                    cluster.runtime.scheduler.drive()
    (states,) = (tmp_path / "data" / "__transaction_state-0").glob("*.log")
    out = run("dump-log", "--transaction-log-decoder", "--files", str(states))
    assert re.findall(r'"transactionStatus":(\d)', out) == list("0124135")
    assert set(re.findall(r'key: (\S+) payload: \{"version":"1"', out)) == {
        '{"type":"0","data":{"transactionalId":"till"}}'
    }
    (log,) = (tmp_path / "data" / "paid-0").glob("*.log")
    out = run("dump-log", "--print-data-log", "--files", str(log))
    assert re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: (\d+)", out) == [
        ("COMMIT", "0"),
        ("ABORT", "0"),
    ]
    assert out.count("isTransactional: true") == 4
    assert "isvalid: false" not in out


def test_a_hanging_transaction_is_found_and_aborted() -> None:
    """A transaction unknown to its coordinator, which a broker without verification accepts."""
    with embedlog.open(transaction_partition_verification_enable=False) as cluster:
        cluster.create_topic("hung", 1)
        server = ("--bootstrap-server", cluster.listen("127.0.0.1", 0).address)
        request = produce(("hung", bytes(16)), 11, batch((777, 0), b"x"), transactional_id="ghost")
        answer = cluster.broker().core.handle(RequestContext(ApiKey.PRODUCE, 11), request)
        assert answer.responses[0].partition_responses[0].error_code == 0
        find = ("find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0")
        found = run("transactions", *server, *find)
        assert re.search(r"^hung\s+0\s+777\s+0\s", found, re.MULTILINE)
        place = ("--topic", "hung", "--partition", "0")
        run("transactions", *server, "abort", *place, "--start-offset", "0")
        left = run("transactions", *server, "describe-producers", *place)
        assert re.search(r"^777\s.*None\s*$", left, re.MULTILINE)
        assert "hung" not in run("transactions", *server, *find)
