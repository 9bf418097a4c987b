"""The fixtures of the pytest plugin, in projects as users have them."""

from __future__ import annotations

import pytest

from embedlog.testing import Kafka
from tests.support.kafka import free_port
from tests.testing.plugin.conftest import Project

pytestmark = pytest.mark.slow


def test_each_test_gets_a_fresh_cluster(project: Project) -> None:
    found = project.run(
        """
        def test_one(kafka):
            kafka.create_topic("orders", 3)
            kafka.producer().send("orders", b"x").result()

        def test_two(kafka, kafka_bootstrap_servers):
            assert kafka.cluster.topics == []
            assert kafka_bootstrap_servers == kafka.bootstrap_servers
        """
    )
    found.assert_outcomes(passed=2)
    assert "LeakWarning" not in found.stdout.str()


def test_the_session_belongs_to_all_tests_and_what_one_made_is_gone_in_the_next(
    project: Project,
) -> None:
    project.write(
        conftest="""
            import pytest

            @pytest.fixture(scope="session")
            def shared(kafka_session):
                kafka_session.create_topic("shared", 1)
                return kafka_session
        """
    )
    found = project.run(
        """
        import pytest
        clusters, names = set(), set()

        @pytest.fixture
        def table(shared):
            shared.create_topic("table", 1)

        @pytest.mark.parametrize("number", range(3))
        def test_it(shared, table, number, kafka_bootstrap_servers):
            assert sorted(shared.cluster.topics) == ["shared", "table"]
            shared.create_topic("orders", 1)
            consumer = shared.consumer(group_id="g", auto_offset_reset="earliest")
            consumer.subscribe(["orders"])
            shared.producer().send("orders", b"%d" % number).result()
            records = []
            while not records:
                records = list(consumer.poll(1_000))
            assert [each.value for each in records] == [b"%d" % number]
            consumer.close()
            assert kafka_bootstrap_servers == shared.bootstrap_servers
            names.add(shared.name("x"))
            clusters.add(shared.cluster.cluster_id)

        def test_after(shared):
            assert shared.cluster.topics == ["shared"]
            assert list(shared.admin().list_groups()) == []
            assert len(clusters) == 1 and len(names) == 3
        """
    )
    found.assert_outcomes(passed=4)


def test_a_topic_of_the_sessions_shape_is_empty_in_each_test(project: Project) -> None:
    found = project.run(
        """
        import pytest
        pytestmark = pytest.mark.kafka(topics={"orders": 2})

        @pytest.mark.parametrize("number", range(2))
        def test_it(kafka_session, number):
            got = kafka_session.producer().send("orders", b"x", partition=1).result()
            assert got.offset == 0
        """
    )
    found.assert_outcomes(passed=2)


def test_brokers_that_a_test_stopped_run_in_the_next(project: Project) -> None:
    found = project.run(
        """
        import pytest
        pytestmark = pytest.mark.kafka(brokers=3, topics={"orders": 1})

        def test_stop(kafka_session):
            kafka_session.broker(2).kill()
            kafka_session.broker(3).pause()

        def test_after(kafka_session):
            nodes = kafka_session.brokers
            assert [(each.is_running, each.is_paused) for each in nodes] == [(True, False)] * 3
            kafka_session.producer().send("orders", b"x").result()
        """
    )
    found.assert_outcomes(passed=2)


def test_environment_variables_lead_to_the_cluster_during_the_test(project: Project) -> None:
    project.ini("embedlog_env =", "    KAFKA_BOOTSTRAP_SERVERS", "    BROKER_PORT")
    found = project.run(
        """
        import os
        import pytest

        @pytest.mark.kafka(env={"URL": "kafka://{host}:{port}"})
        def test_it(kafka):
            assert os.environ["KAFKA_BOOTSTRAP_SERVERS"] == kafka.bootstrap_servers
            assert kafka.bootstrap_servers.endswith(":" + os.environ["BROKER_PORT"])
            assert os.environ["URL"] == "kafka://" + kafka.bootstrap_servers

        def test_after():
            assert not {"KAFKA_BOOTSTRAP_SERVERS", "BROKER_PORT", "URL"} & os.environ.keys()
        """
    )
    found.assert_outcomes(passed=2)


def test_an_early_session_is_there_when_conftest_is_imported(project: Project) -> None:
    project.ini("embedlog_start = run")
    project.write(conftest='import os\nADDRESS = os.environ["KAFKA_BOOTSTRAP_SERVERS"]')
    found = project.run(
        """
        from conftest import ADDRESS

        def test_it(kafka_session):
            assert ADDRESS == kafka_session.bootstrap_servers
        """
    )
    found.assert_outcomes(passed=1)


def test_an_early_session_listens_at_the_port_that_the_tests_expect(project: Project) -> None:
    port = free_port()
    found = project.run(
        f"""
        import embedlog

        def test_it(kafka_session):
            assert kafka_session.bootstrap_servers == "127.0.0.1:{port}"
            with embedlog.Producer("127.0.0.1:{port}") as producer:
                producer.send("orders", b"x").result()
        """,
        "-o",
        f"embedlog_start=run:{port}",
    )
    found.assert_outcomes(passed=1)


def test_an_early_session_has_settings(project: Project) -> None:
    project.ini(
        "embedlog_start = run", "embedlog_config =", "    num.partitions=4", "    node.id=7"
    )
    found = project.run(
        """
        def test_it(kafka_session):
            assert kafka_session.create_topic("orders").partition_count == 4
            assert [each.node_id for each in kafka_session.brokers] == [7]
        """
    )
    found.assert_outcomes(passed=1)


@pytest.mark.parametrize("given", ["num.partitions", "num.partitions=x"])
def test_a_wrong_setting_of_an_early_session_is_refused(project: Project, given: str) -> None:
    found = project.run("", "-o", "embedlog_start=run", "-o", f"embedlog_config={given}")
    found.stderr.fnmatch_lines(["*embedlog_start: *num.partition*"])


def test_an_early_session_ends_before_the_streams_of_loggers(project: Project) -> None:
    found = project.run(
        """
        import logging, sys

        logging.basicConfig(level=logging.INFO, stream=sys.stderr, force=True)

        def test_it(kafka_session):
            assert kafka_session.bootstrap_servers
        """,
        "-o",
        "embedlog_start=run",
        in_process=False,
    )
    found.assert_outcomes(passed=1)
    found.stderr.no_fnmatch_line("*Logging error*")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("rum:9092", "*rum:9092: unknown; did you mean 'run'?*"),
        ("use:9092", "*use:9092: expected run:PORT*"),
        ("run:", "*run:: expected run:PORT*"),
        ("run:x", "*run:x: expected run:PORT*"),
        ("run:0", "*run:0: expected run:PORT*"),
        ("run:70000", "*run:70000: expected run:PORT*"),
    ],
)
def test_a_wrong_start_is_refused(project: Project, given: str, told: str) -> None:
    found = project.run("", "-o", f"embedlog_start={given}")
    found.stderr.fnmatch_lines([told])


def test_a_port_that_is_taken_is_told(project: Project) -> None:
    with Kafka() as other:
        port = other.bootstrap_servers.rpartition(":")[2]
        found = project.run("", "-o", f"embedlog_start=run:{port}")
    found.stderr.fnmatch_lines([f"*embedlog_start: *{port}*"])


def test_a_projects_own_fixture_of_the_name_wins(project: Project) -> None:
    project.write(
        helpers='import pytest\n@pytest.fixture\ndef kafka():\n    return "theirs"',
        conftest='pytest_plugins = ["helpers"]',
    )
    found = project.run(
        """
        import pytest

        @pytest.mark.kafka(nodes=3)
        def test_it(kafka):
            assert kafka == "theirs"
        """
    )
    found.assert_outcomes(passed=1)


def test_a_projects_fixture_may_wrap_ours(project: Project) -> None:
    project.write(
        conftest="""
            import pytest

            @pytest.fixture
            def kafka(kafka):
                kafka.create_topic("always", 1)
                return kafka
        """
    )
    found = project.run(
        """
        import pytest

        @pytest.mark.kafka(topics={"orders": 1})
        @pytest.mark.kafka(brokers=2, topics={"orders": 1})
        def test_it(kafka):
            assert kafka.cluster.topics == ["always", "orders"]
        """
    )
    found.assert_outcomes(passed=2)


def test_a_projects_own_option_of_the_name_stays(project: Project) -> None:
    project.write(
        conftest='def pytest_addoption(parser):\n    parser.addoption("--kafka", default="no")'
    )
    found = project.run(
        """
        def test_it(request, kafka):
            assert request.config.getoption("--kafka") == "mine"
            assert request.config.getoption("--embedlog-kafka") is None
        """,
        "--kafka=mine",
    )
    found.assert_outcomes(passed=1)


def test_the_setting_renames_fixtures_and_marker(project: Project) -> None:
    project.ini("embedlog_fixture = log")
    found = project.run(
        """
        import pytest

        @pytest.mark.log(topics={"orders": 6})
        def test_it(log, log_session, log_bootstrap_servers):
            assert log.cluster.topics == ["orders"]
            assert log_bootstrap_servers == log.bootstrap_servers != log_session.bootstrap_servers

        def test_without(kafka):
            pass
        """
    )
    found.assert_outcomes(passed=1, errors=1)


def test_failed_tests_show_the_sections_of_providers(project: Project) -> None:
    found = project.run(
        """
        def test_it(kafka):
            kafka.on_failure(lambda: [("lag", f"7 records at {len(kafka.brokers)} broker")])
            kafka.on_failure(lambda: [("broken", {}["x"])])
            assert False, "the reason"
        """
    )
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        ["*the reason*", "*kafka: lag*", "7 records at 1 broker", "*cannot report: KeyError('x')"]
    )


def test_a_failed_test_shows_the_end_of_its_timeline(project: Project) -> None:
    found = project.run(
        """
        import pytest

        @pytest.mark.kafka(topics={"t": 1}, timeline=True)
        def test_it(kafka):
            with kafka.fault("Produce", error="NOT_ENOUGH_REPLICAS"):
                kafka.producer().send("t", b"x").result()
            assert False

        def test_without(kafka):
            assert False
        """
    )
    found.assert_outcomes(failed=2)
    found.stdout.fnmatch_lines(
        [
            "*kafka: timeline, all * events*",
            "+* fault *a rule meets Produce (reason: 'Produce', error='NOT_ENOUGH_REPLICAS')",
        ]
    )
    assert found.stdout.str().count("kafka: timeline") == 1


def test_settings_record_and_save_what_a_failed_test_did(project: Project) -> None:
    project.ini("embedlog_timeline = on", "embedlog_save = states")
    found = project.run(
        """
        import pytest

        @pytest.mark.parametrize("topic", ["a/b"])
        def test_it(kafka, topic):
            kafka.create_topic("t")
            for number in range(100):
                kafka.producer().send("t", b"%d" % number).result()
            assert False

        @pytest.mark.kafka(timeline=False)
        def test_passes(kafka):
            assert kafka.recording is None
        """
    )
    found.assert_outcomes(failed=1, passed=1)
    path = project.pytester.path / "states" / "test_it-a-b"
    found.stdout.fnmatch_lines(
        [
            "*kafka: timeline, the last 40 of * events*",
            f"open it with: embedlog serve --data {path}",
        ]
    )
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with Kafka.load(path) as kafka:
        assert len(kafka.topic("t")) == 100
    project.run(None, "-k", "test_it")
    assert (path.parent / "test_it-a-b-2").is_dir()


def test_records_explain_how_they_differ(project: Project) -> None:
    found = project.run(
        """
        import sys
        from types import ModuleType

        diff = ModuleType("embedlog.testing.topics.diff")
        diff.explain = lambda left, right: ["the third record is missing"]

        class View(list):
            __module__ = "embedlog.testing.topics.view"

        def test_it(monkeypatch):
            monkeypatch.setitem(sys.modules, diff.__name__, diff)
            assert View([1, 2]) == [1, 2, 3]

        def test_other(monkeypatch):
            monkeypatch.setitem(sys.modules, diff.__name__, diff)
            assert [1, 2] == [1, 2, 3]
        """
    )
    found.assert_outcomes(failed=2)
    assert found.stdout.str().count("E       assert the third record is missing") == 1


def test_a_seed_is_repeated_by_an_option(project: Project) -> None:
    code = """
        from embedlog.testing import simulate
        seeds = []

        @simulate(seeds=5)
        def test_it(kafka):
            seeds.append(kafka.seed)
            assert kafka.seed != 3, seeds
        """
    found = project.run(code)
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["*simulated with seed 3; again: *--kafka-seed=3*"])
    found = project.run(code, "--kafka-seed=3")
    found.stdout.fnmatch_lines(["*AssertionError: [[]3[]]*"])
    project.run(code, "--kafka-seed=4").assert_outcomes(passed=1)


def test_a_session_has_no_part_in_tests_without_it_and_forgets_their_errors(
    project: Project,
) -> None:
    found = project.run(
        """
        import logging

        def blunder():
            try:
                raise ZeroDivisionError
            except ZeroDivisionError as error:
                logging.getLogger("embedlog.broker").error("failed", exc_info=error)

        def test_1_uses_it(kafka_session):
            kafka_session.create_topic("orders", 1)

        def test_2_does_not():
            blunder()

        def test_3_uses_it(kafka_session):
            assert kafka_session.cluster.topics == []

        def test_4_uses_it_and_errs(kafka_session):
            blunder()

        def test_5_uses_it(kafka_session):
            pass
        """
    )
    found.assert_outcomes(passed=5, errors=1)
    found.stdout.fnmatch_lines(["*ERROR at teardown of test_4_uses_it_and_errs*"])
