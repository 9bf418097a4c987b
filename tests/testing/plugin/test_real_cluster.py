"""The same tests against a cluster outside: `--kafka=HOST:PORT`."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from embedlog.testing import Kafka
from tests.support.kafka import real_kafka
from tests.testing.plugin.conftest import Project

pytestmark = pytest.mark.slow

CODE = """
    import pytest

    @pytest.mark.kafka(topics={"orders": 2})
    def test_records(kafka, kafka_bootstrap_servers):
        topic = kafka.name("bills")
        kafka.create_topic(topic, 1)
        kafka.producer().send(topic, b"x").result()
        kafka.producer().send("orders", b"x").result()
        consumer = kafka.consumer(group_id=kafka.name("g"), auto_offset_reset="earliest")
        consumer.subscribe([topic, "orders"])
        found = []
        while len(found) < 2:
            found.extend(consumer.poll(1_000))
        assert kafka.client_config("confluent")["bootstrap.servers"] == kafka_bootstrap_servers

    def test_session(kafka_session):
        kafka_session.create_topic("orders", 1)
        kafka_session.producer().send("orders", b"x").result()

    def test_stop(kafka):
        kafka.broker().stop()

    def test_part(kafka):
        kafka.watch_leaks()

    @pytest.mark.kafka(brokers=3)
    def test_three(kafka):
        pass

    @pytest.mark.kafka(clock="manual")
    def test_clock(kafka):
        pass

    @pytest.mark.kafka(config={"num.partitions": 3})
    def test_config(kafka):
        pass
    """
REASONS = [
    "*needs the fake: brokers that stop, fail and pause (kafka.broker)*",
    "*needs the fake: kafka.watch_leaks*",
    "*needs 3 brokers, and * has 1*",
    "*needs the fake: clock='manual'*",
    "*needs the fake: config={'num.partitions': 3}*",
]


def test_tests_that_need_the_fake_are_skipped_and_say_why(project: Project) -> None:
    with Kafka(topics={"theirs": 1}) as outside:
        found = project.run(CODE, f"--kafka={outside.bootstrap_servers}", "-rs")
        assert outside.cluster.topics == ["theirs"]
    found.assert_outcomes(passed=2, skipped=5)
    found.stdout.fnmatch_lines_random(["kafka: the cluster at *, not embedlog", *REASONS])


def test_the_same_tests_pass_on_the_fake(project: Project) -> None:
    found = project.run(CODE, "-k", "not clock and not stop")
    found.assert_outcomes(passed=5, deselected=2)


def test_a_topic_of_somebody_else_is_never_deleted(project: Project) -> None:
    with Kafka(topics={"theirs": 1}) as outside:
        outside.producer().send("theirs", b"kept").result()
        found = project.run(
            """
            import pytest

            @pytest.mark.kafka(topics={"mine": 1, "theirs": 1})
            def test_it(kafka):
                pass

            def test_misspelt(kafka):
                kafka.creat_topic("x")
            """,
            f"--kafka={outside.bootstrap_servers}",
        )
        assert outside.cluster.topics == ["theirs"]
        consumer = outside.consumer(auto_offset_reset="earliest")
        consumer.assign([("theirs", 0)])
        assert [each.value for each in consumer.poll(5_000)] == [b"kept"]
    found.assert_outcomes(errors=1, failed=1)
    found.stdout.fnmatch_lines(
        ["*topic 'theirs' exists at *use kafka.name('theirs')*", "*did you mean 'create_topic'*"]
    )


@pytest.mark.slow
def test_an_address_without_a_cluster_fails_the_tests_soon(project: Project) -> None:
    begin = time.monotonic()
    found = project.run(
        """
        def test_one(kafka):
            pass

        def test_two(kafka_session):
            pass
        """,
        "--kafka=127.0.0.1:1",
    )
    found.assert_outcomes(errors=2)
    found.stdout.fnmatch_lines(["*--kafka=127.0.0.1:1: no cluster answers: *"])
    assert time.monotonic() - begin < 30


@pytest.mark.slow
@pytest.mark.interop
def test_on_apache_kafka(project: Project, tmp_path: Path) -> None:
    with real_kafka(tmp_path) as address:
        found = project.run(CODE, f"--kafka={address}", "-rs")
    found.assert_outcomes(passed=2, skipped=5)
    found.stdout.fnmatch_lines_random(REASONS)
