"""Real clients behind a proxy, with brokers of ours and with a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import embedlog
from embedlog.testing.proxy.proxy import Proxy
from tests.support.kafka import real_kafka

confluent = pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.interop


@pytest.fixture(params=["embedlog", "kafka"])
def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxy]:
    if request.param == "kafka":
        with real_kafka(tmp_path) as address, Proxy(address) as made:
            yield made
        return
    with embedlog.open(brokers=3) as cluster:
        cluster.listen("127.0.0.1", 0)
        with Proxy(cluster.brokers[0].address or "") as made:
            yield made


def test_confluent_kafka_in_a_transaction_and_in_a_group(proxy: Proxy) -> None:
    embedlog.Admin(proxy.bootstrap_servers).create_topics(["proxied"]).check()
    with proxy.record() as log:
        producer = confluent.Producer(
            {"bootstrap.servers": proxy.bootstrap_servers, "transactional.id": "proxied"}
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        for number in range(50):
            producer.produce("proxied", b"%d" % number)
        producer.commit_transaction(30)
        consumer = confluent.Consumer(
            {
                "bootstrap.servers": proxy.bootstrap_servers,
                "group.id": "proxied",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["proxied"])
        found = []
        while len(found) < 50:
            record = consumer.poll(30)
            assert record is not None and record.error() is None
            found.append(record.value())
        consumer.commit(asynchronous=False)
        consumer.close()
    assert found == [b"%d" % number for number in range(50)]
    assert log.count("EndTxn") == 1 and log.requests("OffsetCommit", group="proxied")
