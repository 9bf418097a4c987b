"""The marker `kafka`: on functions, classes and modules; matrices; wrong arguments."""

from __future__ import annotations

import pytest

from tests.testing.plugin.conftest import Project

pytestmark = pytest.mark.slow


def test_markers_of_module_class_and_function_are_joined(project: Project) -> None:
    found = project.run(
        """
        import pytest
        pytestmark = pytest.mark.kafka(topics={"orders": 6}, config={"num.partitions": 2})

        @pytest.mark.kafka(brokers=2, topics={"bills": {"partitions": 1}})
        class TestIt:
            @pytest.mark.kafka(config={"log.retention.ms": 5}, topics={"orders": 3})
            def test_all(self, kafka):
                assert len(kafka.brokers) == 2
                assert kafka.cluster.topics == ["bills", "orders"]
                assert kafka.create_topic("x").partition_count == 2
                assert kafka.cluster.config.log_retention_ms == 5
                described = kafka.admin().describe_topics(["orders"])["orders"]
                assert len(described.partitions) == 3

        def test_module(kafka):
            assert kafka.cluster.topics == ["orders"] and len(kafka.brokers) == 1
        """
    )
    found.assert_outcomes(passed=2)


def test_several_markers_are_a_matrix_with_readable_ids(project: Project) -> None:
    code = """
        import pytest

        @pytest.mark.kafka(brokers=1, topics={"a": 1})
        @pytest.mark.kafka(brokers=3, topics={"a": 1})
        class TestIt:
            @pytest.mark.kafka(config={"num.partitions": 4})
            @pytest.mark.kafka(id="plain")
            def test_it(self, kafka):
                print(len(kafka.brokers), kafka.create_topic("x").partition_count)

        @pytest.mark.kafka(brokers=2)
        @pytest.mark.kafka(brokers=1)
        def test_session(kafka_session):
            print(len(kafka_session.brokers))
        """
    found = project.run(code, "-v", "-rP")
    found.assert_outcomes(passed=6)
    found.stdout.fnmatch_lines_random(
        [
            "*test_it[[]brokers=3-num.partitions=4[]] PASSED*",
            "*test_it[[]brokers=1-num.partitions=4[]] PASSED*",
            "*test_it[[]plain0[]] PASSED*",
            "*test_session[[]brokers=2[]] PASSED*",
            "3 4",
            "1 4",
            "3 1",
        ]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("broker=3", "*kafka(broker=3): no such argument; did you mean 'brokers'?*"),
        ("3", "*give every argument by its name*"),
        ("brokers=0", "*brokers=0: expected a number of brokers*"),
        ("clock='manuel'", "*clock='manuel': expected one of real, manual, auto*"),
        ("topics=['a']", "*topics=[[]'a'[]]): expected a dict*"),
        ("env={'URL': '{hosts}'}", "*env URL='{hosts}': a template may contain*"),
        ("leaks='fial'", "*leaks of all kinds: 'fial' is unknown; did you mean 'fail'?*"),
        ("leaks='conections=off'", "*'conections' is unknown; did you mean 'connections'?*"),
    ],
)
def test_a_wrong_argument_is_refused_when_the_test_is_collected(
    project: Project, arguments: str, message: str
) -> None:
    found = project.run(
        f"""
        import pytest

        @pytest.mark.kafka({arguments})
        def test_wrong(kafka):
            pass
        """,
        "--collect-only",
    )
    assert found.ret == pytest.ExitCode.INTERRUPTED
    found.stdout.fnmatch_lines(["*ERROR collecting test_it.py*", message])
    assert "test_wrong" in found.stdout.str()


def test_other_tests_may_use_the_marker_for_themselves(project: Project) -> None:
    found = project.run(
        """
        import pytest

        @pytest.mark.kafka("slow", anything=1)
        def test_it():
            pass
        """
    )
    found.assert_outcomes(passed=1)


def test_a_fixture_asked_for_in_the_test_reads_its_marker(project: Project) -> None:
    found = project.run(
        """
        import pytest

        @pytest.mark.kafka(brokers=2)
        def test_it(request):
            assert len(request.getfixturevalue("kafka").brokers) == 2

        @pytest.mark.kafka(broker=2)
        def test_wrong(request):
            request.getfixturevalue("kafka")
        """
    )
    found.assert_outcomes(passed=1, failed=1)
    found.stdout.fnmatch_lines(["*did you mean 'brokers'?*"])
