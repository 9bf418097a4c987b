"""The timeline: its events, their reasons, and its files."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

import embedlog
from embedlog.errors import ConfigError
from embedlog.testing import Kafka
from embedlog.testing.timeline.event import KINDS
from embedlog.testing.timeline.recorder import ENTRIES_MAX
from tests.server.wire_client import WireClient
from wire import decode
from wire.headers import decode_request_header
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic


def test_a_fault_is_there_with_its_rule() -> None:
    with Kafka(topics={"t": 1}, timeline=True) as kafka:
        assert kafka.recording is not None
        log = kafka.recording
        with kafka.fault("Produce", topic="t", error="NOT_ENOUGH_REPLICAS") as rule:
            kafka.producer(client_id="svc").send("t", b"x").result()
        (event,) = log.of_kind("fault")
        assert (event.api, event.client_id, event.node_id) == ("Produce", "svc", 1)
        assert event.why == str(rule) and "NOT_ENOUGH_REPLICAS" in event.why
        assert str(event) in log.tail(40).splitlines()
        assert log.tail(1) == str(log[-1])
        log.end()
        with kafka.fault("Produce", topic="t", error="NOT_ENOUGH_REPLICAS"):
            kafka.producer().send("t", b"x").result()
        assert len(log.of_kind("fault")) == 1


def test_requests_are_there_with_client_places_and_errors() -> None:
    with Kafka(topics={"orders": 2}) as kafka, kafka.record() as log:
        host, port = kafka.bootstrap_servers.split(":")
        with WireClient((host, int(port)), "svc") as client:
            for name in ("orders", "no topic"):
                topics = [MetadataRequestTopic(name=name)]
                client.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 8)
            own_host, own_port = client.sock.getsockname()
        good, bad = log.requests("Metadata", client_id="svc")
        assert good.fields["topics"] == ["orders"] and good.errors == ()
        assert bad.errors == ("INVALID_TOPIC_EXCEPTION",)
        assert good.peer == f"{own_host}:{own_port}" and good.version == 8 and good.node_id == 1
        assert good.at_us < bad.at_us and good.duration_us is not None
        assert log.requests(topic="orders", client_id="svc") == [good]
        assert log.requests(error="INVALID_TOPIC_EXCEPTION") == [bad]
        assert log.count("Metadata", client_id="svc") == 2
        assert log.between(good, bad) == [
            each for each in log if good.at_us < each.at_us < bad.at_us
        ]
        assert '"svc": Metadata 8' in str(log) and "INVALID_TOPIC" in str(log)


def test_a_rebalance_tells_its_reason() -> None:
    with Kafka(topics={"t": 2}) as kafka, kafka.record() as log:
        first = kafka.consumer(group_id="g", client_id="one", group_protocol="classic")
        first.subscribe(["t"])
        _join(first)
        (begun, *_) = [each for each in log.of_kind("rebalance") if "preparing" in each.text]
        assert "adding new member one" in begun.why and "group g" in begun.text


def test_a_rebalance_of_a_new_group_tells_its_reason() -> None:
    with Kafka(topics={"t": 2}) as kafka, kafka.record() as log:
        consumer = kafka.consumer(group_id="g", group_protocol="consumer")
        consumer.subscribe(["t"])
        _join(consumer)
        (begun, *_) = [each for each in log.of_kind("rebalance") if "rebalances" in each.text]
        assert begun.why.startswith("the subscription of member ")


def test_an_election_is_there_with_the_former_leader() -> None:
    with Kafka(brokers=3, topics={"t": {"partitions": 1, "replication_factor": 3}}) as kafka:
        leader = kafka.partition("t", 0).leader
        assert leader is not None
        with kafka.record() as log:
            kafka.broker(leader).kill()
        found = [each for each in log.of_kind("election") if "partition t-0" in each.text]
        assert f"it was {leader} in epoch" in found[0].text
        assert any(f"broker {leader} is fenced" in each.text for each in log)


def test_transactions_tell_their_states_and_the_fence() -> None:
    with Kafka(topics={"t": 1}) as kafka, kafka.record() as log:
        producer = kafka.producer(transactional_id="tx")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"x").result()
        other = kafka.producer(transactional_id="tx")
        other.init_transactions()
        texts = [each.text for each in log if "transactional id tx" in each.text]
    assert any("is Ongoing" in each for each in texts)
    assert any("a new producer fences epoch 0" in each for each in texts)
    assert any("is CompleteAbort" in each for each in texts)


def test_log_lines_come_without_any_configuration_of_logging_and_end_with_the_recording() -> None:
    with Kafka() as kafka:
        with kafka.record() as log:
            kafka.create_topic("one", 1)
        kafka.create_topic("two", 1)
        texts = [each.text for each in log.of_kind("topic")]
        assert texts == ["created topic one with 1 partitions"]


def test_a_second_recording_ends_the_first() -> None:
    with Kafka() as kafka:
        first = kafka.record()
        second = kafka.record()
        kafka.create_topic("one", 1)
        assert len(first) == 0 and second.count("CreateTopics") == 1


def test_old_events_are_forgotten_and_counted() -> None:
    with Kafka() as kafka, kafka.record() as log:
        for number in range(ENTRIES_MAX + 5):
            log.note("fault", str(number))
        assert len(log) == ENTRIES_MAX and log.dropped == 5
        assert log[0].text == "5" and str(log).startswith("(5 earlier events were forgotten)")


def test_json_lines_hold_each_event(tmp_path: Path) -> None:
    with Kafka(topics={"t": 1}) as kafka, kafka.record() as log:
        kafka.producer(client_id="p").send("t", b"x").result()
        log.note("fault", "cut", why="the rule of the test", node_id=1)
        log.write_json_lines(tmp_path / "log.jsonl")
        rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert len(rows) == len(log)
    (produced,) = [each for each in rows if each.get("api") == "Produce"]
    assert produced["client_id"] == "p" and produced["fields"]["partitions"] == ["t-0"]
    assert rows[-1]["why"] == "the rule of the test" and rows[-1]["kind"] == "fault"
    assert abs(rows[-1]["at"] * 1000 - log.began_wall_ms) < 60_000


def test_a_capture_holds_frames_as_they_were_sent(tmp_path: Path) -> None:
    with Kafka(topics={"t": 1}) as kafka, kafka.record(frames=True) as log:
        host, port = kafka.bootstrap_servers.split(":")
        with WireClient((host, int(port)), "svc") as client:
            client.send(MetadataRequest(topics=[MetadataRequestTopic(name="t" * 249)] * 300), 8)
            answer = client.receive_frame()
        log.write_pcap(tmp_path / "log.pcap")
    packets = list(_packets((tmp_path / "log.pcap").read_bytes()))
    sent = b"".join(payload for source, payload in packets if source != 9092)
    received = b"".join(payload for source, payload in packets if source == 9092)
    assert len(packets) > 2, "a large frame takes several packets"
    assert received == struct.pack(">i", len(answer)) + answer
    key, version, _, client_id, position = decode_request_header(memoryview(sent)[4:])
    assert (key, version, client_id) == (3, 8, "svc")
    assert len(decode(MetadataRequest, 8, sent[4:][position:]).topics or []) == 300


def test_what_cannot_be_asked_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with Kafka() as kafka, kafka.record() as log:
        with pytest.raises(ConfigError, match="did you mean 'rebalance'"):
            log.of_kind("rebalanse")
        with pytest.raises(ConfigError, match="did you mean 'Produce'"):
            log.requests("Prodce")
        with pytest.raises(ConfigError, match=r"record\(frames=True\)"):
            log.write_pcap(tmp_path / "x")
        assert "request" in KINDS


def _join(consumer: embedlog.Consumer) -> None:
    for _ in range(1_000):
        consumer.poll(timeout_ms=10)
        if consumer.assignment():
            return
    raise AssertionError("no partition was assigned")


def _packets(data: bytes) -> list[tuple[int, bytes]]:
    assert struct.unpack_from("<I", data)[0] == 0xA1B2C3D4
    at, found = 24, []
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 8)
        packet = data[at + 16 : at + 16 + size]
        assert struct.unpack_from(">H", packet, 2)[0] == size
        words = struct.unpack(">10H", packet[:20])
        total = sum(words)
        assert (total & 0xFFFF) + (total >> 16) == 0xFFFF, "the checksum of the IP header"
        found.append((struct.unpack_from(">H", packet, 20)[0], packet[40:]))
        at += 16 + size
    return found
