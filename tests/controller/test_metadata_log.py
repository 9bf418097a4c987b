"""The metadata log: published changes survive a restart, and any crash."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wire
from embedlog.common import TopicPartition
from embedlog.controller import metadata_log
from embedlog.controller.controller import Controller
from embedlog.controller.features import GROUP, SAFE_DOWNGRADE, TRANSACTION, UPGRADE
from embedlog.controller.metadata import RESOURCE_BROKER, RESOURCE_TOPIC
from embedlog.controller.metadata_records import PartitionRegistration, TopicRecord
from embedlog.errors import CorruptRecord, KafkaError
from embedlog.runtime.randomness import seeded
from embedlog.testing.sim_files import SimFiles, SimulatedCrash
from embedlog.testing.simulated_runtime import sim_runtime
from tests.controller.made_topics import create_topic
from tests.controller.metadata_state import Opened, plain
from wire.records import build_batch

Step = Callable[[Controller], object]


def delete(name: str) -> Step:
    def step(controller: Controller) -> None:
        topic = controller.image.topics_by_name.get(name)
        if topic is not None:
            controller.delete_topic(topic.topic_id)

    return step


STEPS: list[Step] = [
    lambda c: create_topic(c, "a", partition_count=2, configs={"retention.ms": "5"}),
    lambda c: create_topic(c, "b"),
    lambda c: c.create_partitions("a", len(c.image.topics_by_name["a"].partitions) + 1),
    lambda c: c.bump_leader_epochs([TopicPartition("a", 0), TopicPartition("b", 0)]),
    lambda c: c.alter_configs(RESOURCE_TOPIC, "b", [(0, "segment.ms", "7")]),
    lambda c: c.alter_configs(RESOURCE_TOPIC, "b", [(1, "segment.ms", None)]),
    lambda c: c.alter_configs(RESOURCE_BROKER, "", [(0, "message.max.bytes", "9000")]),
    lambda c: c.allocate_producer_ids(),
    lambda c: c.update_features([(TRANSACTION, 1, SAFE_DOWNGRADE), (GROUP, 0, SAFE_DOWNGRADE)]),
    lambda c: c.update_features([(TRANSACTION, 2, UPGRADE), (GROUP, 1, UPGRADE)]),
    delete("a"),
    delete("b"),
]


def perform(controller: Controller, step: Step) -> None:
    with suppress(KafkaError, KeyError):  # refused, for want of the topic or because of it
        step(controller)


@given(st.lists(st.sampled_from(range(len(STEPS))), max_size=25))
def test_a_restart_sees_what_was_published(choices: list[int]) -> None:
    opened = Opened()
    for choice in choices:
        perform(opened.controller, STEPS[choice])
    published = plain(opened.controller.image)
    assert plain(opened.reopen().controller.image) == published


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(range(len(STEPS))), max_size=15),
    st.lists(st.sampled_from(range(len(STEPS))), max_size=8),
)
def test_a_snapshot_says_the_same_as_what_it_replaces(before: list[int], after: list[int]) -> None:
    opened = Opened()
    for choice in before:
        perform(opened.controller, STEPS[choice])
    opened.metadata_log.rewrite(opened.controller.image)
    assert opened.log.offsets.log_start_offset > 0
    opened = opened.reopen()
    for choice in after:
        perform(opened.controller, STEPS[choice])
    published = plain(opened.controller.image)
    assert plain(opened.reopen().controller.image) == published


def test_a_long_log_about_little_is_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_log, "SNAPSHOT_RECORD_COUNT_MIN", 20)
    opened = Opened()
    for _ in range(30):
        opened.controller.allocate_producer_ids()
    assert opened.metadata_log.needs_snapshot(opened.controller.image)
    published = plain(opened.controller.image)
    start = opened.log.offsets.log_start_offset
    opened.controller.compact()
    assert opened.log.offsets.log_start_offset > start
    opened = opened.reopen()
    assert plain(opened.controller.image) == published
    before = opened.metadata_log.end_offset
    opened.controller.compact()
    assert opened.metadata_log.end_offset == before


def test_topics_deleted_earlier_are_remembered_for_the_cleaning_up() -> None:
    opened = Opened()
    topic_id = create_topic(opened.controller, "a").topic_id
    delete("a")(opened.controller)
    assert opened.reopen().controller.removed_topic_ids == {topic_id}


def run(files: SimFiles) -> tuple[list[dict[str, object]], int]:
    """Run all steps; return the states published before the crash, and the number of calls."""
    runtime = sim_runtime(seed=5, files=files)
    states: list[dict[str, object]] = []
    try:
        opened = Opened(runtime)
        states.append(plain(opened.controller.image))
        for step in STEPS:
            perform(opened.controller, step)
            states.append(plain(opened.controller.image))
        opened.logs.close()
    except SimulatedCrash:
        pass
    return states, files.calls


@pytest.mark.slow
def test_a_crash_at_any_file_call_keeps_every_published_change() -> None:
    """Loss of power at each call: the log holds the published changes, or one more."""
    everything, calls = run(SimFiles())
    assert calls > 20
    for call in range(1, calls + 1):
        files = SimFiles()
        files.crash(call)
        states, _ = run(files)
        for image in files.crash_images(seeded(call), 4):
            found = plain(Opened(sim_runtime(seed=5, files=image)).controller.image)
            known = everything[max(len(states) - 1, 0) : len(states) + 1]
            if not states:
                # No change was acknowledged; the cluster may have got another id.
                assert found["topics"] == {}
                continue
            assert found in known, call


def test_partitions_of_an_older_log_are_read() -> None:
    opened = Opened()
    state = PartitionRegistration(partition=0, leader=1, leader_epoch=4, replicas=[1], isr=[1])
    record = TopicRecord(name="old", topic_id=b"o" * 16, partitions=[state])
    value = b"\x40\x01\x00" + wire.encode(record, 0)
    with opened.log.lock:
        opened.log.append_as_leader(build_batch([value], timestamps=0), leader_epoch=0, now_ms=0)
    partition = opened.reopen().controller.image.partition("old", 0)
    assert partition is not None
    assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 4, (1,))
    assert (partition.elr, partition.is_reassigning, partition.is_recovering) == ((), False, False)


def test_a_record_of_somebody_else_is_not_taken_for_ours() -> None:
    for value in (b"", b"\x01\x02\x00rest", b"\x40\x63\x00", b"\x40\x01\x00cut"):
        again = Opened()
        with again.log.lock:
            again.log.append_as_leader(build_batch([value], timestamps=0), leader_epoch=0, now_ms=0)
        segment = again.log.segments[-1]
        position = segment.indexes.position_of(1, segment.size)
        with pytest.raises(CorruptRecord) as caught:
            again.reopen()
        assert caught.value.path.endswith(".log")
        assert caught.value.position == position


@pytest.mark.slow
def test_every_flipped_bit_is_found_or_does_no_harm() -> None:
    """After a clean close, when only replay reads the log."""
    opened = Opened()
    for step in STEPS[:6]:
        perform(opened.controller, step)
    opened.logs.close()
    disk = opened.runtime.files
    expected = plain(Opened(sim_runtime(files=disk.survivor())).controller.image)
    path = "data/__cluster_metadata-0/00000000000000000000.log"
    found = harmless = 0
    for bit in range(0, len(disk.read(path)) * 8, 7):
        damaged = disk.survivor()
        file = damaged.open(path)
        file.write([bytes([file.view(bit // 8, 1)[0] ^ 1 << bit % 8])], bit // 8)
        try:
            image = plain(Opened(sim_runtime(files=damaged)).controller.image)
        except CorruptRecord as error:
            assert error.path == path
            assert 0 <= error.position <= bit // 8
            found += 1
        else:
            assert image == expected, bit
            harmless += 1
    assert found > 10 * harmless
