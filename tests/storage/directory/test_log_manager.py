"""A data directory: one owner, logs made, found, kept and removed, state kept in Kafka's files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from embedlog import errors
from embedlog.common import TopicPartition, uuid_to_text
from embedlog.errors import ClosedError, CorruptRecord, DirectoryLocked, EmbedlogError
from embedlog.runtime import real_runtime
from embedlog.runtime.randomness import seeded
from embedlog.storage import paths
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.directory.meta_properties import read_properties
from embedlog.storage.log_config import LogConfig
from embedlog.storage.state_files import checkpoint_files
from embedlog.storage.state_files.sealed_file import read_sealed, write_sealed
from embedlog.testing import SimFiles, sim_runtime
from tests.storage.logs import DATA, NOW, PARTITION, append, check, manager, new_log, values

OTHER = TopicPartition("other-topic", 12)
TOPIC_ID = bytes(range(16))


def test_a_new_directory_is_empty_and_clean() -> None:
    owner = manager()
    assert owner.directory.clean
    assert owner.partitions() == []
    assert owner.get(PARTITION) is None


def test_a_directory_has_one_owner_at_a_time() -> None:
    disk = SimFiles()
    owner = manager(disk)
    with pytest.raises(DirectoryLocked):
        manager(disk)
    owner.close()
    owner.close()
    manager(disk).close()


def test_logs_are_found_again_and_loaded_when_asked_for() -> None:
    disk = SimFiles()
    owner = manager(disk)
    append(owner.get_or_create(PARTITION, topic_id=TOPIC_ID), b"a")
    append(owner.get_or_create(OTHER), b"b")
    assert owner.get_or_create(PARTITION) is owner.get(PARTITION)
    owner.close()
    again = manager(disk)
    assert again.directory.clean
    assert again.partitions() == [PARTITION, OTHER]
    assert again.logs() == []
    log = again.get(PARTITION)
    assert log is not None
    assert values(log) == [b"a"]
    assert log.topic_id == TOPIC_ID
    assert again.logs() == [log]
    again.close()
    third = manager(disk)
    assert third.directory.clean
    untouched = third.get(OTHER)
    assert untouched is not None
    assert values(untouched) == [b"b"]


def test_the_topic_id_is_kept_in_kafkas_form_and_must_not_change() -> None:
    owner = manager()
    log = owner.get_or_create(PARTITION, topic_id=TOPIC_ID)
    text = log.files.read(f"{log.directory}/partition.metadata")
    assert text.startswith(f"version: 0\ntopic_id: {uuid_to_text(TOPIC_ID)}\n".encode())
    owner.get_or_create(PARTITION, topic_id=TOPIC_ID)
    with pytest.raises(errors.InconsistentTopicId):
        owner.get_or_create(PARTITION, topic_id=bytes(reversed(TOPIC_ID)))


def test_the_topic_id_outlives_a_loss_of_power_once_a_record_is_durable() -> None:
    disk = SimFiles()
    owner = manager(disk, config=LogConfig(durability="fsync"))
    log = owner.get_or_create(PARTITION, topic_id=TOPIC_ID)
    append(log, b"a")
    log.durability.sync(1)
    for image in disk.crash_images(seeded(4), 6):
        again = manager(image, config=LogConfig(durability="fsync")).get(PARTITION)
        assert again is not None
        assert again.topic_id == TOPIC_ID


def test_a_closed_manager_makes_nothing_and_its_logs_refuse_writes() -> None:
    owner = manager()
    log = owner.get_or_create(PARTITION)
    append(log, b"a")
    owner.close()
    with pytest.raises(ClosedError):
        owner.get_or_create(OTHER)
    with pytest.raises(errors.KafkaStorageError):
        append(log, b"b")
    assert owner.tasks.run_once(10**9) is None


def test_a_deleted_log_is_gone_and_may_be_made_again() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION, topic_id=TOPIC_ID)
    append(log, b"old")
    log.offsets.update_high_watermark(1)
    log.offsets.increment_log_start_offset(1)
    log.durability.flush()
    owner.checkpoints.write_positions()
    view = new_log_view(log)
    owner.delete(PARTITION)
    owner.delete(PARTITION)
    assert owner.get(PARTITION) is None
    assert [name for name in disk.list(DATA) if "events" in name] == []
    with pytest.raises(errors.KafkaStorageError):
        append(log, b"late")
    assert bytes(view)
    fresh = owner.get_or_create(PARTITION, topic_id=bytes(reversed(TOPIC_ID)))
    append(fresh, b"new")
    again = manager(disk.survivor()).get(PARTITION)
    assert again is not None
    assert values(again) == [b"new"]


def new_log_view(log: object) -> memoryview:
    append(log, b"seen")
    return log.reader.read(1, max_bytes=1000, end_offset=2).records


def test_a_deletion_that_was_interrupted_is_finished_by_the_next_owner() -> None:
    disk = SimFiles()
    owner = manager(disk)
    append(owner.get_or_create(PARTITION), b"a")
    owner.close()
    doomed = paths.deleted_log_name(PARTITION, TOPIC_ID)
    disk.rename(f"{DATA}/{PARTITION}", f"{DATA}/{doomed}")
    again = manager(disk)
    assert again.partitions() == []
    assert doomed not in disk.list(DATA)


def test_checkpoints_are_in_kafkas_form_and_keep_unloaded_logs() -> None:
    disk = SimFiles()
    owner = manager(disk, config=LogConfig(durability="fsync"))
    for partition in (PARTITION, OTHER):
        log = owner.get_or_create(partition)
        for value in (b"a", b"b", b"c"):
            append(log, value)
        log.offsets.update_high_watermark(2)
    first = owner.get(PARTITION)
    assert first is not None
    first.offsets.increment_log_start_offset(1)
    owner.close()
    again = manager(disk, config=LogConfig(durability="fsync"))
    assert again.get(OTHER) is not None
    again.close()
    text = {
        name: disk.read(f"{DATA}/{name}") for name in disk.list(DATA) if name.endswith("checkpoint")
    }
    assert text == {
        "log-start-offset-checkpoint": b"0\n1\nevents 0 1\n",
        "recovery-point-offset-checkpoint": b"0\n2\nevents 0 3\nother-topic 12 3\n",
        "replication-offset-checkpoint": b"0\n2\nevents 0 2\nother-topic 12 2\n",
    }
    log = manager(disk).get(PARTITION)
    assert log is not None
    assert (
        log.offsets.log_start_offset,
        log.offsets.high_watermark,
        log.durability.synced_offset,
    ) == (1, 2, 3)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_damaged_topic_id_is_written_anew_and_another_one_is_refused(step: int) -> None:
    owner = manager()
    log = owner.get_or_create(PARTITION, topic_id=TOPIC_ID)
    path = f"{log.directory}/{paths.PARTITION_METADATA}"
    owner.close()
    base = log.files.survivor()
    content = base.read(path)
    for bit in range(0, len(content) * 8, step):
        disk = base.survivor()
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        disk.open(path).write([bytes(changed)], 0)
        assert manager(disk).get_or_create(PARTITION, topic_id=TOPIC_ID).topic_id == TOPIC_ID
        assert disk.read(path) == content
    disk = base.survivor()
    file = disk.open(path)
    file.truncate(content.index(b"\ncrc"))  # as Kafka writes it
    assert manager(disk).get_or_create(PARTITION, topic_id=TOPIC_ID).topic_id == TOPIC_ID
    for other in (base, disk):
        with pytest.raises(errors.InconsistentTopicId):
            manager(other.survivor()).get_or_create(PARTITION, topic_id=bytes(15) + b"!")


@pytest.mark.parametrize(
    "content",
    [b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na x 1\n", b"0\n", b"x", b"\xff"],
)
def test_a_damaged_checkpoint_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptRecord):
        checkpoint_files.decode_offsets(content, "c")


def test_offset_checkpoints_survive_their_file() -> None:
    offsets = {PARTITION: 5, OTHER: 2**40}
    assert checkpoint_files.decode_offsets(checkpoint_files.encode_offsets(offsets), "c") == offsets
    assert checkpoint_files.decode_offsets(b"", "empty") == {}


def test_properties_survive_their_file() -> None:
    disk = SimFiles()
    properties = {"version": "1", "cluster.id": "x=y", "node.id": "1"}
    content = b"#\nversion=1\ncluster.id=x=y\nnode.id=1\n"
    disk.open("p", create=True).write([content], 0)
    assert read_properties(disk, "p") == properties
    disk.open("q", create=True).write([b"# comment\n!\n\n a = b \nbroken\n"], 0)
    assert read_properties(disk, "q") == {"a": "b"}
    assert read_properties(disk, "missing") == {}


def test_a_sealed_file_notices_every_flipped_bit() -> None:
    disk = SimFiles()
    assert read_sealed(disk, "s") is None
    write_sealed(disk, "s", b"content", sync=False)
    assert read_sealed(disk, "s") == b"content"
    file = disk.open("s")
    for position in range(file.size()):
        for bit in range(8):
            byte = file.view(position, 1)[0]
            file.write([bytes([byte ^ 1 << bit])], position)
            with pytest.raises(CorruptRecord):
                read_sealed(disk, "s")
            file.write([bytes([byte])], position)
    file.truncate(20)
    with pytest.raises(CorruptRecord):
        read_sealed(disk, "s")


# Markers


def test_only_a_clean_close_is_clean() -> None:
    disk = SimFiles()
    owner = manager(disk)
    append(owner.get_or_create(PARTITION), b"a")
    assert not manager(disk.survivor()).directory.clean
    owner.close()
    assert manager(disk.survivor()).directory.clean
    assert disk.read(f"{DATA}/.kafka_cleanshutdown").startswith(b'{"version":0,"brokerEpoch":-1,')


def test_a_clean_close_without_sync_is_not_clean_after_a_reboot() -> None:
    for durability, outlives in (("os", False), ("fsync", True)):
        disk = SimFiles()
        owner = manager(disk, config=LogConfig(durability=durability))
        append(owner.get_or_create(PARTITION), b"a")
        owner.close()
        rebooted = list(disk.crash_images(seeded(1), 2))[1]
        assert manager(rebooted).directory.clean is outlives


def test_kafkas_own_marker_is_believed() -> None:
    disk = SimFiles()
    owner = manager(disk)
    append(owner.get_or_create(PARTITION), b"a")
    survivor = disk.survivor()
    marker = survivor.open(f"{DATA}/.kafka_cleanshutdown", create=True)
    marker.write([b'{"version":0,"brokerEpoch":7}'], 0)
    assert manager(survivor).directory.clean


# Background work


def test_background_work_runs_when_it_is_due() -> None:
    runtime = sim_runtime()
    config = LogConfig(segment_bytes=200, retention_ms=60_000)
    owner = LogManager(runtime, DATA, config)
    runtime.scheduler.add(owner.tasks)
    log = owner.get_or_create(PARTITION)
    for _ in range(3):
        append(log, b"x" * 100, timestamps=runtime.clock.wall_ms(), producer=(-1, -1, -1))
    append(log, b"p", producer=(5, 0, 0), timestamps=NOW)
    log.offsets.update_high_watermark(4)
    runtime.scheduler.run_for(10_000)
    assert b"events 0 4" in runtime.files.read(f"{DATA}/replication-offset-checkpoint")
    assert "recovery-point-offset-checkpoint" not in runtime.files.list(DATA)
    runtime.scheduler.run_for(60_000)
    assert "recovery-point-offset-checkpoint" in runtime.files.list(DATA)
    assert log.offsets.log_start_offset == 0
    runtime.scheduler.run_for(300_000)
    assert log.offsets.log_start_offset == 4
    assert list(log.transactions.producers) != []
    runtime.scheduler.run_for(2 * 86_400_000)
    assert list(log.transactions.producers) == []
    check(log)


def test_nothing_is_due_soon_while_nothing_changes() -> None:
    runtime = sim_runtime()
    now_ms = runtime.clock.monotonic_ms
    owner = LogManager(runtime, DATA)
    runtime.scheduler.add(owner.tasks)

    def check_that_it_rests() -> None:
        runtime.scheduler.run_for(200_000)
        assert owner.tasks.is_resting
        # Only retention and the expiry of producers are left.
        assert (owner.tasks.run_once(now_ms()) or 0) > 5000

    log = owner.get_or_create(PARTITION)
    assert not owner.tasks.is_resting
    check_that_it_rests()
    path = f"{DATA}/replication-offset-checkpoint"
    for end_offset in (1, 2):
        append(log, b"a")
        log.offsets.update_high_watermark(end_offset)
        owner.tasks.stir()
        assert not owner.tasks.is_resting
        assert (owner.tasks.run_once(now_ms()) or 0) <= 5000
        runtime.scheduler.run_for(5000)
        assert b"events 0 %d" % end_offset in runtime.files.read(path)
        check_that_it_rests()


def test_flush_settings_are_obeyed() -> None:
    for settings in ({"flush_ms": 3000}, {"flush_messages": 2}):
        runtime = sim_runtime()
        owner = LogManager(runtime, DATA, LogConfig(**settings))
        runtime.scheduler.add(owner.tasks)
        log = owner.get_or_create(PARTITION)
        append(log, b"a", b"b")
        assert log.durability.synced_offset == 0
        runtime.scheduler.run_for(5000)
        assert log.durability.synced_offset == 2


def test_retention_pauses_when_the_wall_clock_jumps() -> None:
    runtime = sim_runtime()
    owner = LogManager(runtime, DATA, LogConfig(segment_bytes=200, retention_ms=60_000))
    runtime.scheduler.add(owner.tasks)
    log = owner.get_or_create(PARTITION)
    append(log, b"x", timestamps=NOW)
    log.offsets.update_high_watermark(1)
    runtime.scheduler.run_for(1000)
    runtime.clock.set_wall(NOW + 365 * 86_400_000)
    runtime.scheduler.run_for(600_000)
    assert owner.tasks.clock_guard.is_paused
    assert log.offsets.log_start_offset == 0
    runtime.clock.set_wall(NOW + 700_000)
    runtime.scheduler.run_for(300_000)
    assert not owner.tasks.clock_guard.is_paused
    assert log.offsets.log_start_offset == 1


@pytest.mark.parametrize("kind", ["suspend", "a clock put right", "a clock put back"])
def test_a_pause_of_retention_ends(kind: str) -> None:
    runtime = sim_runtime()
    owner = LogManager(runtime, DATA, LogConfig(segment_bytes=200, retention_ms=60_000))
    runtime.scheduler.add(owner.tasks)
    log = owner.get_or_create(PARTITION)
    append(log, b"x", timestamps=NOW)
    log.offsets.update_high_watermark(1)
    runtime.scheduler.run_for(1000)
    if kind == "suspend":
        runtime.clock.suspend(8 * 3_600_000)
        runtime.scheduler.run_for(600_000)
        assert not owner.tasks.clock_guard.is_paused
    else:
        sign = 1 if kind == "a clock put right" else -1
        runtime.clock.set_wall(NOW + sign * 600_000)
        runtime.scheduler.run_for(3_000_000)
        assert owner.tasks.clock_guard.is_paused
        assert log.offsets.log_start_offset == 0
        runtime.scheduler.run_for(3_000_000)
        assert not owner.tasks.clock_guard.is_paused
    assert log.offsets.log_start_offset == 1


def test_producers_are_not_forgotten_by_a_wrong_clock() -> None:
    runtime = sim_runtime()
    owner = LogManager(runtime, DATA, LogConfig(producer_id_expiration_ms=86_400_000))
    runtime.scheduler.add(owner.tasks)
    log = owner.get_or_create(PARTITION)
    append(log, b"a", producer=(7, 0, 0))
    runtime.clock.set_wall(NOW + 8 * 86_400_000)
    runtime.scheduler.run_for(1_200_000)
    assert [each.producer_id for each in list(log.transactions.producers)] == [7]
    runtime.scheduler.run_for(3_600_000)
    assert list(log.transactions.producers) == []


def test_an_io_error_of_one_log_leaves_the_others_alone() -> None:
    from errno import EIO

    runtime = sim_runtime()
    owner = LogManager(runtime, DATA, LogConfig(flush_messages=1))
    broken, healthy = owner.get_or_create(PARTITION), owner.get_or_create(OTHER)
    append(broken, b"a")
    append(healthy, b"b")
    runtime.files.fail(runtime.files.calls, EIO)
    runtime.scheduler.add(owner.tasks)
    runtime.scheduler.run_for(3000)
    assert broken.failure is not None
    assert healthy.failure is None
    assert healthy.durability.synced_offset == 1
    owner.close()
    assert not manager(runtime.files).directory.clean


# Descriptors


def test_few_files_are_open_however_many_logs_there_are() -> None:
    runtime = sim_runtime()
    owner = LogManager(runtime, DATA, LogConfig(), open_files_max=8)
    logs = [owner.get_or_create(TopicPartition("many", number)) for number in range(50)]
    for round_number in range(3):
        for log in logs:
            append(log, b"%d" % round_number)
            opened = [one for one in logs if one.segments[-1].file.opened is not None]
            assert len(opened) <= 8
    for log in logs:
        assert values(log) == [b"0", b"1", b"2"]
        check(log)


def test_a_segment_in_use_stays_open_longer_than_one_that_is_not() -> None:
    runtime = sim_runtime()
    owner = LogManager(runtime, DATA, LogConfig(), open_files_max=4)
    busy = owner.get_or_create(TopicPartition("busy", 0))
    reopened = 0
    for number in range(30):
        owner.get_or_create(TopicPartition("idle", number))
        reopened += busy.segments[-1].file.opened is None
        append(busy, b"x")
        values(busy)
    assert reopened < 10


def test_configuration_reaches_present_and_future_logs() -> None:
    owner = manager()
    log = owner.get_or_create(PARTITION)
    changed = LogConfig(max_message_bytes=99)
    owner.configure("events", changed)
    assert log.config is changed
    assert owner.get_or_create(TopicPartition("events", 1)).config is changed
    assert new_log().config.max_message_bytes == 1_048_588


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a-0", TopicPartition("a", 0)),
        ("a-b-12", TopicPartition("a-b", 12)),
        ("a", None),
        ("-1", None),
        ("a-", None),
        ("a-x", None),
        ("a-0.00112233445566778899aabbccddeeff00-delete", None),
    ],
)
def test_a_directory_name_tells_its_partition(name: str, expected: TopicPartition | None) -> None:
    assert paths.parse_log_directory(name) == expected


def test_the_name_of_a_doomed_log_fits_the_file_system() -> None:
    name = paths.deleted_log_name(TopicPartition("t" * 249, 7), TOPIC_ID)
    assert len(name) == 255
    assert paths.is_deleted_log(name)


def test_a_read_of_a_log_that_was_removed_is_a_typed_error() -> None:
    owner = manager()
    log = owner.get_or_create(PARTITION)
    append(log, b"a")
    owner.delete(PARTITION)
    with pytest.raises(errors.KafkaStorageError):
        log.reader.read(0, max_bytes=100, end_offset=1)


def test_a_forked_child_cannot_touch_its_parents_directory(tmp_path: Path) -> None:
    owner = LogManager(real_runtime(), str(tmp_path), LogConfig(durability="fsync"))
    log = owner.get_or_create(PARTITION)
    append(log, b"parent")
    view = log.reader.read(0, max_bytes=1000, end_offset=1).records
    content = bytes(view)
    child = os.fork()
    if child == 0:
        refused = 0
        for work in (
            lambda: append(log, b"child"),
            lambda: owner.get_or_create(OTHER),
            lambda: log.reader.read(0, max_bytes=1000, end_offset=1),
            lambda: owner.delete(PARTITION),
        ):
            try:
                work()
            except EmbedlogError:
                refused += 1
        owner.close()
        os._exit(0 if refused == 4 and bytes(view) == content else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert ".kafka_cleanshutdown" not in os.listdir(tmp_path)
    append(log, b"parent again")
    assert values(log) == [b"parent", b"parent again"]
    owner.close()
    again = LogManager(real_runtime(), str(tmp_path), LogConfig())
    assert again.directory.clean
    assert again.partitions() == [PARTITION]
    again.close()


def test_a_deletion_cut_short_leaves_nothing_to_the_next_log_of_that_name() -> None:
    """A kill between the renaming of the directory and the checkpoint after it."""
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    for number in range(4):
        append(log, b"old %d" % number)
    log.durability.flush()
    log.offsets.update_high_watermark(4)
    log.offsets.increment_log_start_offset(3)
    disk.rename(log.directory, f"{DATA}/{paths.deleted_log_name(PARTITION, bytes(16))}")
    disk = disk.survivor()
    again = manager(disk)
    assert again.partitions() == []
    made = again.get_or_create(PARTITION)
    assert made.offsets.log_start_offset == 0
    append(made, b"new")
    made.durability.flush()
    found = manager(disk.survivor()).get(PARTITION)
    assert found is not None
    assert found.failure is None
    assert values(found) == [b"new"]
