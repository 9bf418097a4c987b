"""The plugin in processes of its own: workers of xdist, rivals, the cost of its import."""

from __future__ import annotations

import os
import sys

import pytest

from tests.testing.plugin.conftest import Project

pytestmark = pytest.mark.slow

RIVAL = """
    import pytest

    @pytest.fixture
    def kafka():
        return "theirs"
    """
USER = """
    def test_it(kafka):
        assert kafka == "theirs"
    """


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes find embedlog and the modules of the project."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", *sys.path)))


def install_rival(project: Project) -> None:
    """Install another plugin with a fixture of the same name."""
    project.write(rival=RIVAL)
    information = project.pytester.mkdir("rival-1.0.dist-info")
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[pytest11]\nrival = rival\n")


def test_each_worker_has_its_own_cluster(project: Project) -> None:
    found = project.run(
        """
        import os
        import pytest

        @pytest.mark.parametrize("number", range(8))
        def test_it(kafka_session, number):
            with open(os.environ["PYTEST_XDIST_WORKER"], "a") as file:
                file.write(kafka_session.cluster.cluster_id + "\\n")
            kafka_session.create_topic("orders", 1)
            assert kafka_session.producer().send("orders", b"x").result().offset == 0

        @pytest.mark.kafka(brokers=2)
        @pytest.mark.kafka(brokers=1)
        def test_fresh(kafka):
            kafka.create_topic("orders", 1)
        """,
        "-n2",
        in_process=False,
    )
    found.assert_outcomes(passed=10)
    ids = [
        {*path.read_text().split()} for path in project.pytester.path.glob("gw*") if path.is_file()
    ]
    assert len(ids) == 2
    assert all(len(each) == 1 for each in ids)
    assert ids[0] != ids[1]


def test_two_plugins_with_one_name_are_told_apart_by_a_setting(project: Project) -> None:
    install_rival(project)
    found = project.run(USER, in_process=False)
    found.stdout.fnmatch_lines(
        ["*two plugins define the fixture 'kafka': embedlog and rival. Set `embedlog_fixture =*"]
    )
    project.ini("embedlog_fixture = embedlog")
    project.run(USER, in_process=False).assert_outcomes(passed=1)
    project.ini("embedlog_fixture = off")
    project.run(USER, in_process=False).assert_outcomes(passed=1)


def test_a_project_without_kafka_loads_nothing_of_it(project: Project) -> None:
    found = project.run(
        """
        import sys

        def test_it():
            loaded = {each for each in sys.modules if each.startswith(("embedlog", "wire."))}
            assert loaded == {"embedlog", "embedlog.testing", "embedlog.testing.pytest_plugin"}
        """,
        in_process=False,
    )
    found.assert_outcomes(passed=1)
