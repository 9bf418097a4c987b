"""Dead letters: their records and headers, refused topics, and repeated attempts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog import errors
from embedlog.broker.letter_routes import letter_routes
from embedlog.runtime.pending import Pending
from embedlog.sharing.dead_letters import ATTEMPT_COUNT_MAX
from embedlog.sharing.delivery import ARCHIVED, ARCHIVING, Cause
from tests.sharing.world import LOCK_MS, World
from wire.records.batch import iter_batches
from wire.records.encode.builder import build_batch

DEAD = "dlq.t"
ENABLED = {"errors.deadletterqueue.group.enable": "true"}


class Letters:
    """The way of dead letters to the broker; it can be cut."""

    def __init__(self, world: World) -> None:
        self._ask = letter_routes(world.core.node_id, None, world.core.handle)
        self.failures: list[Exception] = []
        self.asked: list[str] = []

    def __call__(self, node_id: int, request: Any) -> Pending[Any]:
        self.asked.append(type(request).__name__)
        if self.failures:
            failed: Pending[Any] = Pending()
            failed.fail(self.failures.pop(0))
            return failed
        return self._ask(node_id, request)


def make_world(**settings: str) -> tuple[World, Letters]:
    """A world whose group has a dead letter topic."""
    world = World(errors_deadletterqueue_topic_name=DEAD, **settings)
    letters = Letters(world)
    world.bury_with(letters)
    return world, letters


@pytest.fixture
def both() -> Iterator[tuple[World, Letters]]:
    """A world with an existing dead letter topic of three partitions."""
    world, letters = make_world()
    world.cluster.create_topic(DEAD, 3, config=ENABLED)
    yield world, letters
    world.close()


def letters_in(world: World, topic: str = DEAD) -> list[Any]:
    """Return the records of partition 0."""
    log = world.core.replica_manager.partition(topic, 0).log
    end = log.offsets.high_watermark
    view = log.reader.read(0, max_bytes=1 << 20, end_offset=end).records
    return [record for batch in iter_batches(view) for record in batch.records()]


def told(record: Any) -> dict[str, str]:
    """Return the headers without their common prefix."""
    return {name.removeprefix("__dlq.errors."): value.decode() for name, value in record.headers}


def test_a_rejected_record_gets_a_letter(both: tuple[World, Letters]) -> None:
    world, _ = both
    world.fill(3)
    world.acquire()
    assert world.say("one", 1, 1, Cause.REJECT) is None
    (letter,) = letters_in(world)
    assert (letter.key, letter.value) == (None, None)
    assert told(letter) == {
        "topic": "t",
        "partition": "0",
        "offset": "1",
        "group": "group",
        "delivery.count": "1",
        "message": "Offset rejected by client.",
    }
    assert [name for name, _ in letter.headers][0] == "__dlq.errors.topic"
    assert world.stored() == [(1, 1, ARCHIVED, 1)]


def test_gaps_and_accepted_records_get_none(both: tuple[World, Letters]) -> None:
    world, letters = both
    world.fill(2)
    world.acquire()
    assert world.say("one", 0, 1, Cause.GAP, Cause.ACCEPT) is None
    assert not letters.asked


def test_a_record_that_comes_back_too_often_gets_a_letter(both: tuple[World, Letters]) -> None:
    world, _ = both
    world.configure(errors_deadletterqueue_topic_name=DEAD, share_delivery_count_limit="2")
    world.fill(2)
    world.acquire()
    assert world.say("one", 0, 1, Cause.RELEASE) is None
    world.acquire()
    world.run_for(LOCK_MS)
    found = [told(letter) for letter in letters_in(world)]
    assert [(each["offset"], each["delivery.count"]) for each in found] == [("0", "2"), ("1", "2")]
    assert {each["message"] for each in found} == {"Offset delivery count exceeded the threshold."}
    assert world.stored() == [(0, 1, ARCHIVED, 2)]
    assert world.share.window.start_offset == 2


def test_the_start_waits_for_the_letter(both: tuple[World, Letters]) -> None:
    world, letters = both
    letters.failures = [errors.NotLeaderOrFollower()]
    world.fill(1)
    world.acquire()
    assert world.say("one", 0, 0, Cause.REJECT) is None  # it is answered before the letter
    assert world.stored() == [(0, 0, ARCHIVING, 1)]
    assert world.share.window.start_offset == 0
    world.run_for(1000)
    assert world.stored() == [(0, 0, ARCHIVED, 1)]
    assert world.share.window.start_offset == 1
    assert len(letters_in(world)) == 1


def test_after_the_last_attempt_the_record_is_archived_without_a_letter(
    both: tuple[World, Letters],
) -> None:
    world, letters = both
    letters.failures = [errors.RequestTimedOut()] * 10
    world.fill(1)
    world.acquire()
    assert world.say("one", 0, 0, Cause.REJECT) is None
    world.run_for(14_999)
    assert world.stored() == [(0, 0, ARCHIVING, 1)]
    world.run_for(1)
    assert letters.asked == ["ProduceRequest"] * ATTEMPT_COUNT_MAX
    assert world.stored() == [(0, 0, ARCHIVED, 1)]


def test_another_error_is_final(both: tuple[World, Letters]) -> None:
    world, letters = both
    letters.failures = [errors.InvalidRecord()]
    world.fill(1)
    world.acquire()
    assert world.say("one", 0, 0, Cause.REJECT) is None
    assert letters.asked == ["ProduceRequest"]
    assert world.stored() == [(0, 0, ARCHIVED, 1)]


@pytest.mark.parametrize(
    ("name", "exists", "config"),
    [
        (DEAD, True, {}),
        (DEAD, False, {}),
        ("letters", True, ENABLED),
    ],
    ids=["not enabled", "missing", "wrong prefix"],
)
def test_a_topic_that_must_not_be_used(name: str, exists: bool, config: dict[str, str]) -> None:
    world = World(errors_deadletterqueue_topic_name=name)
    letters = Letters(world)
    world.bury_with(letters)
    if exists:
        world.cluster.create_topic(name, config=config)
    world.fill(1)
    world.acquire()
    assert world.say("one", 0, 0, Cause.REJECT) is None
    assert not letters.asked
    assert world.stored() == [(0, 0, ARCHIVED, 1)]
    world.close()


def test_a_missing_topic_is_created_if_the_broker_allows_it() -> None:
    world, letters = make_world()
    world.cluster.admin().alter_configs(
        {world.broker_resource: {"errors.deadletterqueue.auto.create.topics.enable": "true"}}
    )
    world.fill(1)
    world.acquire()
    assert world.say("one", 0, 0, Cause.REJECT) is None
    world.run_for(2000)
    assert letters.asked == ["CreateTopicsRequest", "ProduceRequest"]
    assert len(letters_in(world)) == 1
    texts = world.core.image.topic_configs[DEAD]
    assert dict(texts) == {**ENABLED, "message.timestamp.type": "CreateTime"}
    assert world.stored() == [(0, 0, ARCHIVED, 1)]
    world.close()


def test_copies_of_records_and_batches_within_the_limit_of_the_topic() -> None:
    world, letters = make_world(errors_deadletterqueue_copy_record_enable="true")
    world.cluster.create_topic(DEAD, config={**ENABLED, "max.message.bytes": "1000"})
    values = [b"%d" % number * 200 for number in range(5)]
    batch = build_batch(values, keys=[b"k"] * 5, timestamps=1_700_000_000_000)
    world.core.replica_manager.append(world.partition, batch, acks=-1)
    world.acquire()
    assert world.say("one", 0, 4, Cause.REJECT) is None
    found = letters_in(world)
    assert [letter.value for letter in found] == values
    assert {letter.key for letter in found} == {b"k"}
    assert letters.asked.count("ProduceRequest") > 1
    world.close()


def test_a_record_that_the_topic_cannot_take_gets_a_letter_without_a_copy() -> None:
    world, _ = make_world(errors_deadletterqueue_copy_record_enable="true")
    world.cluster.create_topic(DEAD, config={**ENABLED, "max.message.bytes": "1000"})
    batch = build_batch([b"small", b"x" * 900], timestamps=1_700_000_000_000)
    world.core.replica_manager.append(world.partition, batch, acks=-1)
    world.acquire()
    assert world.say("one", 0, 1, Cause.REJECT) is None
    assert [letter.value for letter in letters_in(world)] == [b"small", None]
    assert world.stored() == [(0, 1, ARCHIVED, 1)]
    world.close()


def test_many_letters_are_written_one_batch_after_the_other() -> None:
    world, letters = make_world()
    world.cluster.create_topic(DEAD, config={**ENABLED, "max.message.bytes": "400"})
    world.fill(1500)
    world.acquire()
    assert world.say("one", 0, 1499, Cause.REJECT) is None
    assert letters.asked == ["ProduceRequest"] * 1500
    assert world.stored() == [(0, 1499, ARCHIVED, 1)]
    world.close()


def test_the_level_before_dead_letters_archives_at_once(both: tuple[World, Letters]) -> None:
    world, letters = both
    world.core.controller.update_features([("share.version", 1, 2)])
    world.fill(1)
    world.acquire()
    assert world.say("one", 0, 0, Cause.REJECT) is None
    assert not letters.asked
    assert world.stored() == [(0, 0, ARCHIVED, 1)]
