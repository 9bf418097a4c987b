"""Other languages: the control door, for tests with kafkajs and franz-go."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.tools import ROOT, need_franz_go, need_kafkajs

pytestmark = [pytest.mark.interop, pytest.mark.slow]

ORDERS = {"orders": {"partitions": 3, "replication_factor": 3}}
SCRIPT = ROOT / "tests/testing/recipes/kafkajs_service.js"


def run_kafkajs(kafka, story):
    """Run the service in JavaScript. It breaks the cluster itself, by HTTP."""
    door = kafka.listen_control().url
    command = ["node", SCRIPT, door, kafka.bootstrap_servers, story]
    subprocess.run(command, env=need_kafkajs(), check=True, timeout=60)


@pytest.mark.kafka(topics={"orders": 1})
def test_kafkajs_and_a_restart(kafka):
    """kafkajs, and a broker that restarts

    The test in JavaScript posts to `/v1/broker/kill` and `/v1/broker/start`, and the service sends
    meanwhile.
    """
    run_kafkajs(kafka, "restart")
    assert kafka.topic("orders").values() == [b"1", b"2"]


@pytest.mark.kafka(topics={"orders": 1})
def test_kafkajs_and_a_full_disk(kafka):
    """kafkajs, and a disk that is full

    It posts to `/v1/broker/disk/fill` and `/v1/broker/disk/free`.
    """
    run_kafkajs(kafka, "full")
    assert kafka.topic("orders").values() == [b"1", b"2"]


@pytest.mark.kafka(brokers=3, topics={"orders": {"partitions": 1, "replication_factor": 3}})
def test_kafkajs_and_a_moved_leader(kafka):
    """kafkajs, and a leader that moves

    It reads `/v1/partition/leader` and posts to `/v1/partition/move_to`.
    """
    run_kafkajs(kafka, "move")
    assert kafka.topic("orders").values() == [b"1", b"2"]


class FranzGo:
    """A producer with franz-go. It prints a line for each acknowledged record."""

    def __init__(self, kafka):
        command = [need_franz_go("cluster"), "produce", kafka.bootstrap_servers, "orders"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def acknowledged(self, count):
        """Return the numbers of the next records."""
        lines = [self.process.stdout.readline().split() for _ in range(count)]
        assert {each[0] for each in lines} == {"acked"}
        return [int(each[1]) for each in lines]

    def close(self):
        self.process.communicate(timeout=30)


@pytest.mark.kafka(brokers=3, topics=ORDERS)
def test_franz_go_and_a_lost_broker(kafka):
    """franz-go, and a broker that is lost

    Every acknowledged record is there after the crash, and only once.
    """
    service = kafka.closing(FranzGo(kafka))
    numbers = service.acknowledged(6)
    kafka.broker(1).kill()
    numbers += service.acknowledged(12)
    service.close()
    values = [int(each) for each in kafka.topic("orders").values()]
    assert set(numbers) <= set(values) and len(values) == len(set(values))


@pytest.mark.kafka(brokers=3, topics=ORDERS)
def test_franz_go_and_a_rule(kafka):
    """franz-go, and an answer that is lost

    Its producer is idempotent by default: the record is written once.
    """
    service = kafka.closing(FranzGo(kafka))
    with kafka.faults.lost_acknowledgement(topic="orders") as fault:
        service.acknowledged(6)
    service.close()
    values = kafka.topic("orders").values()
    assert fault.hits == 1 and len(values) == len(set(values))
