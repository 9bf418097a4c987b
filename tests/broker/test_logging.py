"""The log messages of a cluster: recoveries, failures, topics, groups; nothing about a record."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import embedlog
from embedlog.testing import SimFiles, sim_runtime


def said(caplog: pytest.LogCaptureFixture, part: str, level: int = logging.INFO) -> list[str]:
    name = f"embedlog.{part}"
    return [r.getMessage() for r in caplog.records if r.name == name and r.levelno == level]


@pytest.fixture(autouse=True)
def _everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "embedlog")


def test_topics_and_settings_are_logged_as_they_change(caplog: pytest.LogCaptureFixture) -> None:
    with embedlog.open() as cluster, cluster.admin() as admin:
        admin.create_topics({"events": 3}).check()
        admin.create_partitions({"events": 5}).check()
        resource = embedlog.ConfigResource(embedlog.ResourceType.TOPIC, "events")
        admin.incremental_alter_configs(
            {resource: {"retention.ms": (embedlog.AlterOperation.SET, "1000")}}
        ).check()
        admin.delete_topics(["events"]).check()
    assert said(caplog, "controller") == [
        "created topic events with 3 partitions",
        "topic events has 5 partitions, it had 3",
        "settings of topic events changed: retention.ms",
        "deleted topic events",
    ]


def test_records_log_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with embedlog.open() as cluster, cluster.producer() as producer, cluster.consumer() as consumer:
        producer.send("events", b"v").result()
        consumer.assign([("events", 0)])
        consumer.seek_to_beginning()
        consumer.poll(100)
        caplog.clear()
        for _ in range(100):
            producer.send("events", b"v").result()
            consumer.poll(100)
        assert not caplog.records


def _crashed(directory: Path, *, garbage: bytes = b"") -> None:
    """A directory after a kill, optionally with half a batch at the end."""
    script = (
        "import os, sys, embedlog\n"
        "cluster = embedlog.open(sys.argv[1], durability='os')\n"
        "producer = cluster.producer()\n"
        "for _ in range(10): producer.send('events', b'v').result()\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(directory)], check=True)
    if garbage:
        with (directory / "events-0" / f"{0:020d}.log").open("r+b") as file:
            file.seek(len(file.read().rstrip(b"\0")) + 1)  # the last batch ends with a 0
            file.write(garbage)


def test_recovery_says_what_was_found_and_cut(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _crashed(tmp_path, garbage=b"torn" * 10)
    with embedlog.open(tmp_path):
        pass
    (cut,) = said(caplog, "storage", logging.WARNING)
    assert cut.startswith("events-0 was cut at offset 10: 40 bytes in 1 segments were put aside")
    assert str(tmp_path) in cut
    told = said(caplog, "storage")
    assert f"{tmp_path} was not closed cleanly: its logs will be recovered" in told
    assert "events-0 was recovered after an unclean shutdown: offsets 0 to 10 in 1 segments" in told
    (summary,) = said(caplog, "broker")
    assert summary.startswith("recovered 2 logs in ")
    assert summary.endswith(" ms, 40 bytes did not fit and were put aside")
    assert said(caplog, "storage")[-1] == f"closed {tmp_path}"


@pytest.mark.slow
def test_a_cut_is_seen_without_any_logging_set_up(tmp_path: Path) -> None:
    _crashed(tmp_path, garbage=b"torn" * 10)
    script = "import sys, embedlog; embedlog.open(sys.argv[1]).close()"
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    assert done.stderr.startswith("events-0 was cut at offset 10: 40 bytes")
    assert done.stderr.count("\n") == 1


def test_a_clean_directory_is_opened_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        with embedlog.open(tmp_path) as cluster, cluster.producer() as producer:
            producer.send("events", b"v").result()
    assert not said(caplog, "storage", logging.WARNING)
    assert not said(caplog, "broker")


@pytest.mark.parametrize(("code", "lasts"), [(28, False), (5, True)])
def test_a_disk_that_fails_is_an_error(
    code: int, lasts: bool, caplog: pytest.LogCaptureFixture
) -> None:
    from embedlog.storage.directory.log_manager import LogManager
    from embedlog.storage.log_config import LogConfig

    runtime = sim_runtime()
    files = runtime.files
    assert isinstance(files, SimFiles)
    manager = LogManager(runtime, "data", LogConfig(durability="os"))
    log = manager.get_or_create(embedlog.TopicPartition("events", 0))
    for _ in range(3):
        log.health.refused(OSError(code, os.strerror(code)))
    errors = said(caplog, "storage", logging.ERROR)
    assert len(errors) == 1
    assert os.strerror(code) in errors[0]
    assert ("refuses writes from here on" in errors[0]) is lasts


def test_groups_log_their_rebalances_and_why(caplog: pytest.LogCaptureFixture) -> None:
    with embedlog.open() as cluster:
        cluster.create_topic("events")
        with cluster.consumer(group_id="readers") as consumer:
            consumer.subscribe(["events"])
            while not consumer.assignment():
                consumer.poll(100)
            member = consumer.group_metadata().member_id
    told = said(caplog, "group")
    assert f"member {member} joins group readers" in told
    assert any(
        each.startswith("preparing to rebalance group readers in state ")
        and f"(reason: adding new member {member}" in each
        for each in told
    )
    assert "stabilized group readers generation 1 with 1 members" in told
    assert f"members left group readers: {member}" in told
    assert "group readers with generation 2 is empty" in told
    assert f"member {member} is in generation 1 of group readers" in said(caplog, "client")


@pytest.mark.slow
def test_consumer_groups_log_theirs(caplog: pytest.LogCaptureFixture) -> None:
    with embedlog.open() as cluster:
        cluster.create_topic("events")
        with cluster.consumer(group_id="readers", group_protocol="consumer") as consumer:
            consumer.subscribe(["events"])
            while not consumer.assignment():
                consumer.poll(100)
    told = said(caplog, "group")
    assert any("joins consumer group readers" in each for each in told)
    assert any("consumer group readers rebalances: its epoch is" in each for each in told)
    assert any("leaves consumer group readers" in each for each in told)


@pytest.mark.slow
def test_a_member_whose_session_ends_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    config = {"group.min.session.timeout.ms": 100, "group.initial.rebalance.delay.ms": 0}
    with embedlog.open(config=config) as cluster:
        cluster.create_topic("events")
        address = cluster.listen().address
        script = (
            "import os, sys, embedlog\n"
            "consumer = embedlog.Consumer(sys.argv[1], group_id='readers',"
            " session_timeout_ms=150, heartbeat_interval_ms=50)\n"
            "consumer.subscribe(['events'])\n"
            "while not consumer.assignment(): consumer.poll(100)\n"
            "os._exit(0)\n"
        )
        subprocess.run([sys.executable, "-c", script, address], check=True)
        with cluster.admin() as admin:
            while admin.describe_groups(["readers"])["readers"].members:
                pass
    (warning,) = said(caplog, "group", logging.WARNING)
    assert "in group readers has failed, removing it from the group: its session expired" in warning


def test_retention_says_what_it_deleted(caplog: pytest.LogCaptureFixture) -> None:
    from embedlog.storage.directory.log_manager import LogManager
    from embedlog.storage.log_config import LogConfig
    from tests.storage.directory.test_log_manager import append

    runtime = sim_runtime()
    config = LogConfig(durability="memory", segment_bytes=200, retention_bytes=0)
    manager = LogManager(runtime, "data", config, retention_first_ms=0)
    log = manager.get_or_create(embedlog.TopicPartition("events", 0))
    for _ in range(5):
        append(log, b"v" * 50)
    log.offsets.update_high_watermark(5)
    manager.tasks.run_once(runtime.clock.monotonic_ms() + 1)
    (told,) = [each for each in said(caplog, "storage") if "deleted" in each]
    assert told.startswith("events-0: ")
    assert told.endswith("it begins at 5")


def test_a_checkpoint_that_finds_the_disk_full_is_logged_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from embedlog.storage.directory.log_manager import LogManager
    from embedlog.storage.log_config import LogConfig
    from tests.storage.directory.test_log_manager import append

    runtime = sim_runtime()
    files = runtime.files
    assert isinstance(files, SimFiles)
    manager = LogManager(runtime, "data", LogConfig(durability="os"))
    append(manager.get_or_create(embedlog.TopicPartition("events", 0)), b"v")
    manager.tasks.stir()
    files.fail(files.calls + 1, 28)  # the first sweep looks for the pins of readers
    later_ms = runtime.clock.monotonic_ms() + 61_000
    assert manager.tasks.run_once(later_ms) is not None
    errors = said(caplog, "storage", logging.ERROR)
    assert len(errors) == 1
    assert "failed, and is tried again: [Errno 28]" in errors[0]
    caplog.clear()
    manager.tasks.run_once(later_ms + 61_000)
    assert not said(caplog, "storage", logging.ERROR)
    assert files.stat("data/recovery-point-offset-checkpoint") is not None
