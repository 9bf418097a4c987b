"""Leaks in projects: which of them warn, fail the test, or are of no interest."""

from __future__ import annotations

import pytest

from tests.testing.plugin.conftest import Project

pytestmark = pytest.mark.slow

OPEN = """
    import embedlog
    import pytest
    kept = []

    @pytest.fixture(autouse=True, scope="module")
    def ended():
        yield
        for each in kept:
            each.close()

    def send(kafka):
        producer = embedlog.Producer(kafka.bootstrap_servers, client_id="mine")
        kept.append(producer)
        producer.send("orders", b"x").result()
    """


def test_a_client_that_is_left_open_is_warned_of(project: Project) -> None:
    found = project.run(
        OPEN
        + """
    def test_it(kafka):
        send(kafka)
    """
    )
    found.assert_outcomes(passed=1)
    found.stdout.fnmatch_lines(["*LeakWarning: the test left behind connections: client 'mine'*"])


def test_settings_of_the_project_and_of_a_test_decide(project: Project) -> None:
    project.ini("embedlog_leaks = connections=fail")
    found = project.run(
        OPEN
        + """
    def test_it(kafka):
        send(kafka)

    @pytest.mark.kafka(leaks="connections=off")
    def test_other(kafka):
        send(kafka)
    """
    )
    found.assert_outcomes(passed=2, errors=1)
    found.stdout.fnmatch_lines(
        ["*ERROR at teardown of test_it*", "the test left behind", "connections: client 'mine'*"]
    )


def test_a_test_that_failed_is_not_blamed_for_its_open_clients(project: Project) -> None:
    project.ini("embedlog_leaks = fail")
    found = project.run(
        OPEN
        + """
    def test_it(kafka):
        send(kafka)
        assert False
    """
    )
    found.assert_outcomes(failed=1)
    assert "left behind" not in found.stdout.str()


@pytest.mark.parametrize("fixture", ["kafka", "kafka_session"])
def test_an_exception_of_a_broker_fails_the_test(project: Project, fixture: str) -> None:
    found = project.run(
        f"""
        import logging

        def test_it({fixture}):
            try:
                1 / 0
            except ZeroDivisionError as error:
                logging.getLogger("embedlog.broker").error("Fetch failed", exc_info=error)

        def test_after({fixture}):
            pass
        """
    )
    assert found.parseoutcomes()["passed"] == 2
    assert found.parseoutcomes()["errors"] >= 1
    found.stdout.fnmatch_lines(["*errors: Fetch failed: ZeroDivisionError('division by zero')*"])


def test_clients_of_the_cluster_are_closed_before_connections_are_counted(
    project: Project,
) -> None:
    project.ini("embedlog_leaks = fail")
    found = project.run(
        """
        import embedlog

        def test_it(kafka):
            kafka.closing(embedlog.Producer(kafka.bootstrap_servers)).send("orders", b"x").result()

        def test_session(kafka_session):
            assert kafka_session.client_count == 0
            address = kafka_session.bootstrap_servers
            kafka_session.closing(embedlog.Producer(address)).send("orders", b"x").result()

        def test_after(kafka_session):
            assert kafka_session.client_count == 0
            assert kafka_session.leaks("connections") == []
        """
    )
    found.assert_outcomes(passed=3)


def test_a_transaction_that_only_the_end_aborts_is_a_leak(project: Project) -> None:
    found = project.run(
        """
        def test_it(kafka):
            producer = kafka.producer(transactional_id="t-1")
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("orders", b"x").result()
        """
    )
    found.assert_outcomes(passed=1)
    found.stdout.fnmatch_lines(["*LeakWarning: the test left behind transactions: 't-1' of *"])
