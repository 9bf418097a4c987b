"""A process that can start no more threads: records are written, or refused before they are."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import embedlog
from embedlog.runtime.threads import NoThread


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as made:
        made.create_topic("events", 1)
        yield made


@pytest.fixture
def no_threads(cluster: embedlog.Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", _refuse)


def read(cluster: embedlog.Cluster) -> list[bytes | None]:
    with cluster.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([("events", 0)])
        return [record.value for record in consumer.poll(1_000)]


def test_records_are_written_by_their_callers(cluster: embedlog.Cluster, no_threads: None) -> None:
    with cluster.producer() as producer:
        assert producer.append("events", b"1").offset == 0
        sent = producer.send("events", b"2")
        assert read(cluster) == [b"1", b"2"]
        assert sent.done()
        producer.send_batch("events", [b"3", b"4"])
        assert read(cluster) == [b"1", b"2", b"3", b"4"]


def test_a_record_over_the_network_is_refused_before_it_is_queued(
    cluster: embedlog.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = cluster.listen("127.0.0.1", 0).address
    with embedlog.Producer(address) as producer:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", _refuse)
            for send in (producer.send, producer.append):
                with pytest.raises(NoThread, match="embedlog-producer cannot be started"):
                    send("events", b"refused")
            with pytest.raises(NoThread):
                producer.send_batch("events", [b"refused"])
        assert producer.append("events", b"written").offset == 0
    assert read(cluster) == [b"written"]


def test_a_member_of_a_group_over_the_network_sends_heartbeats_in_its_polls(
    cluster: embedlog.Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    address = cluster.listen("127.0.0.1", 0).address
    monkeypatch.setattr(threading.Thread, "start", _refuse)
    with embedlog.Consumer(address, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["events"])
        while not consumer.assignment():
            consumer.poll(100)
        with cluster.producer() as producer:
            producer.append("events", b"1")
        assert [record.value for record in consumer.poll(5_000)] == [b"1"]
        consumer.commit()
    assert "heartbeats are sent in calls of the consumer only" in caplog.text


def test_an_address_that_cannot_be_served_is_given_back(
    cluster: embedlog.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", _refuse)
        with pytest.raises(NoThread):
            cluster.listen("127.0.0.1", 0)
    listener = cluster.listen("127.0.0.1", 0)
    assert cluster.broker().address == listener.address


def test_a_directory_is_free_after_an_open_without_its_thread(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", _refuse)
        with pytest.raises(NoThread):
            embedlog.open(f"{tmp_path}/data", background=True)
    embedlog.open(f"{tmp_path}/data").close()


def _refuse(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
