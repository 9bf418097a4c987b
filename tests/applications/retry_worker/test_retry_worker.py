"""Two hundred cases of the worker, each with a fresh broker."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException

from tests.applications.helpers import part_of, put, put_all, read_all, until_done

from .app import Policy, Worker

pytestmark = [pytest.mark.slow, pytest.mark.interop]

START_MS = 1_000_000


class Clock:
    """The time that the worker sees. It moves when a test wants it to."""

    def __init__(self) -> None:
        self.ms = START_MS

    def __call__(self) -> int:
        return self.ms


class Jobs:
    """The worker's topics, and what its handler saw."""

    def __init__(self, kafka: Any) -> None:
        self.kafka = kafka
        self.clock = Clock()
        self.topic = kafka.name("jobs")
        self.retries, self.dead = f"{self.topic}.retry", f"{self.topic}.dead"
        self.group = kafka.name("workers")
        self.tried: list[Any] = []
        self.done: list[Any] = []
        self.failures: dict[str, int] = {}
        """Job -> how many of its attempts fail."""
        self.workers: list[Worker] = []

    def create(self, partitions: int = 1) -> None:
        for name in (self.topic, self.retries, self.dead):
            self.kafka.create_topic(name, partitions)

    def handle(self, job: Any) -> None:
        self.tried.append(job)
        name = json.dumps(job)
        if self.tried.count(job) <= self.failures.get(name, 0):
            raise ConnectionError(f"no answer for {name}")
        self.done.append(job)

    def worker(self, **policy: int) -> Worker:
        made = Worker(
            self.kafka.client_config("confluent", group_id=self.group),
            self.kafka.client_config("confluent", "producer"),
            self.topic,
            self.handle,
            policy=Policy(**{"backoff_ms": 0, **policy}),
            now_ms=self.clock,
        )
        self.workers.append(made)
        return made

    def put(self, job: Any, **more: Any) -> Any:
        return put(self.kafka, self.topic, json.dumps(job).encode(), **more)

    def committed(self) -> int:
        """Return how many jobs of the first topic the group has done or passed on."""
        consumer = self.kafka.consumer(group_id=self.group)
        partitions = [(self.topic, each.partition) for each in consumer.partitions_for(self.topic)]
        found = consumer.committed(partitions)
        return sum(each.offset for each in found.values() if each is not None)


@pytest.fixture
def jobs(kafka: Any) -> Iterator[Jobs]:
    made = Jobs(kafka)
    yield made
    for each in made.workers:
        each.close()


def until(worker: Worker, is_done: Callable[[], bool]) -> None:
    until_done(lambda: worker.step(0.05), is_done)


# Jobs that are done

PAYLOADS: list[Any] = [
    None,
    True,
    0,
    -1,
    10**30,
    1.5,
    "",
    "x",
    "ä€🦆",
    "a\x00b",
    "\u2028",
    "x" * 100_000,
    "x" * 900_000,
    [],
    [1, [2, [3]]],
    list(range(5_000)),
    {},
    {"": ""},
    {"a": {"b": {"c": None}}},
    {str(number): number for number in range(1_000)},
    ["x"] * 100,
    {"type": "x", "attempt": 5},
    "not-before",
]
KEYS: list[bytes | None] = [
    None,
    b"",
    b"k",
    "ä".encode(),
    b"\x00",
    b"\xff\xfe",
    b"k" * 10_000,
    b"null",
    b"0",
]


@pytest.mark.parametrize("job", part_of(PAYLOADS, 3), ids=lambda each: repr(each)[:20])
def test_a_job_is_done_once_and_committed(jobs: Jobs, job: Any) -> None:
    jobs.create()
    jobs.put(job)
    worker = jobs.worker()
    until(worker, lambda: bool(jobs.done))
    assert (jobs.done, jobs.committed()) == ([job], 1)
    assert read_all(jobs.kafka, jobs.retries) == read_all(jobs.kafka, jobs.dead) == []


@pytest.mark.parametrize("key", part_of(KEYS, 1), ids=lambda each: repr(each)[:20])
@pytest.mark.parametrize("target", ["retry", "dead"])
def test_a_failed_job_keeps_its_key_and_value(jobs: Jobs, key: bytes | None, target: str) -> None:
    jobs.create(3)
    jobs.failures['"x"'] = 1
    where = jobs.put("x", key=key)
    worker = jobs.worker(attempts=1 if target == "dead" else 2, backoff_ms=1_000)
    until(worker, lambda: jobs.committed() == where.offset + 1)
    [record] = read_all(jobs.kafka, f"{jobs.topic}.{target}")
    assert (record.key, record.value) == (key, b'"x"')


# Attempts

ATTEMPTS = [(attempts, failures) for attempts in range(1, 7) for failures in range(attempts + 2)]


@pytest.mark.parametrize(("attempts", "failures"), part_of(ATTEMPTS, 4))
def test_a_job_is_tried_so_often_and_then_set_aside(
    jobs: Jobs, attempts: int, failures: int
) -> None:
    jobs.create()
    jobs.failures['"x"'] = failures
    jobs.put("x", headers=[("trace", b"t1")])
    worker = jobs.worker(attempts=attempts)
    tries = min(attempts, failures + 1)
    until(worker, lambda: len(jobs.tried) == tries and jobs.committed() == 1)
    dead = read_all(jobs.kafka, jobs.dead)
    assert len(jobs.done) == (failures < attempts)
    assert len(dead) == (failures >= attempts)
    retried = read_all(jobs.kafka, jobs.retries)
    assert [each.headers["attempt"] for each in retried] == [
        str(number).encode() for number in range(1, tries)
    ]
    for record in [*dead, *retried]:
        assert record.headers["trace"] == b"t1"
        assert record.headers["reason"] == b'ConnectionError: no answer for "x"'
        assert record.headers["origin"] == f"{jobs.topic}/0".encode()
    if dead:
        assert dead[0].headers["attempt"] == str(attempts).encode()
        assert "not-before" not in dead[0].headers


BACKOFFS = [(attempt, backoff) for attempt in (1, 2, 3) for backoff in (1, 100, 60_000, 86_400_000)]


@pytest.mark.parametrize(("attempt", "backoff"), part_of(BACKOFFS, 2))
def test_an_attempt_waits_for_its_time(jobs: Jobs, attempt: int, backoff: int) -> None:
    jobs.create()
    jobs.failures['"x"'] = attempt
    jobs.put("x")
    worker = jobs.worker(attempts=5, backoff_ms=backoff)
    for number in range(1, attempt + 1):
        until(worker, lambda number=number: len(jobs.tried) == number)
        pause = backoff << (number - 1)
        last = read_all(jobs.kafka, jobs.retries)[-1]
        assert last.headers["not-before"] == str(jobs.clock.ms + pause).encode()
        jobs.clock.ms += pause - 1
        worker.step(0.15)
        worker.step(0.01)
        assert len(jobs.tried) == number
        jobs.clock.ms += 1
    until(worker, lambda: jobs.done == ["x"])


# Jobs that nobody can read

POISON: list[bytes | None] = [
    None,
    b"",
    b" ",
    b"{",
    b"}",
    b"[1,]",
    b"'x'",
    b"\x00",
    b"\xff",
    b"\x80abc",
    b"nul",
    b"{1: 2}",
    b"01",
    b"--1",
    b'"\x01"',
    b'"unfinished',
    b"1 2",
    b"x" * 500_000,
    b"[" * 100_000,
    b"\xef\xbb\xbf",
    b"\x00\x00\x00\x00\x01abc",
    bytes(range(256)),
]


@pytest.mark.parametrize("value", part_of(POISON, 3), ids=lambda each: repr(each)[:20])
def test_a_poison_pill_is_set_aside_at_once(jobs: Jobs, value: bytes | None) -> None:
    jobs.create()
    put(jobs.kafka, jobs.topic, value, b"k")
    jobs.put("next")
    worker = jobs.worker(attempts=5)
    until(worker, lambda: jobs.done == ["next"])
    assert jobs.committed() == 2
    [record] = read_all(jobs.kafka, jobs.dead)
    assert (record.key, record.value) == (b"k", value)
    assert record.headers["reason"]
    assert read_all(jobs.kafka, jobs.retries) == []
    assert jobs.tried == ["next"]


# Many jobs

MIXES = [
    (count, partitions, every)
    for count in (5, 20, 60, 200)
    for partitions in (1, 3)
    for every in (2, 7)
]


@pytest.mark.parametrize(("count", "partitions", "every"), part_of(MIXES, 2))
def test_good_jobs_go_on_beside_bad_ones(
    jobs: Jobs, count: int, partitions: int, every: int
) -> None:
    jobs.create(partitions)
    names = [f"j{number}" for number in range(count)]
    bad = names[::every]
    jobs.failures.update({json.dumps(each): 9 for each in bad})
    records = [{"value": json.dumps(each).encode(), "key": each.encode()} for each in names]
    put_all(jobs.kafka, jobs.topic, records)
    worker = jobs.worker(attempts=2)
    until(worker, lambda: len(jobs.tried) == count + len(bad))
    assert sorted(jobs.done) == sorted(set(names) - set(bad))
    assert jobs.committed() == count
    dead = read_all(jobs.kafka, jobs.dead)
    assert sorted(each.key or b"" for each in dead) == sorted(each.encode() for each in bad)


# Workers that come and go

HANDOVERS = [
    (before, after, leaves)
    for before in (0, 1, 5)
    for after in (0, 1, 5)
    for leaves in (True, False)
]


@pytest.mark.parametrize(("before", "after", "leaves"), part_of(HANDOVERS, 2))
def test_the_next_worker_goes_on_where_the_last_one_ended(
    jobs: Jobs, before: int, after: int, leaves: bool
) -> None:
    jobs.create(2)
    for number in range(before):
        jobs.put(number, key=str(number).encode())
    first = jobs.worker()
    until(first, lambda: len(jobs.done) == before and len(first.assigned) == 4)
    if leaves:
        first.close()
        jobs.workers.remove(first)
    for number in range(before, before + after):
        jobs.put(number, key=str(number).encode())
    second = jobs.worker()
    alive = [second] if leaves else [first, second]

    def step() -> None:
        for each in alive:
            each.step(0.02)

    until_done(step, lambda: sum(len(each.assigned) for each in alive if second.assigned) == 4)
    until_done(step, lambda: jobs.committed() == before + after)
    assert sorted(jobs.done) == list(range(before + after))


@pytest.mark.parametrize(("count", "nth"), part_of([(c, n) for c in (2, 5, 10) for n in (1, 2)], 1))
def test_a_worker_that_dies_after_its_work_does_it_again(jobs: Jobs, count: int, nth: int) -> None:
    jobs.create()
    for number in range(count):
        jobs.put(number)
    first = jobs.worker()
    with jobs.kafka.fault("OffsetCommit", error="UNKNOWN_SERVER_ERROR", nth=nth) as fault:
        with pytest.raises(KafkaException, match="_FAIL|UNKNOWN"):
            until(first, lambda: len(jobs.done) == count)
        assert (fault.hits, jobs.done) == (1, list(range(nth)))
    jobs.workers.remove(first)
    first.close()
    second = jobs.worker()
    until(second, lambda: jobs.committed() == count)
    assert Counter(jobs.done) == Counter([*range(count), nth - 1])


@pytest.mark.parametrize("count", part_of([3, 12], 1))
@pytest.mark.parametrize("when", ["before", "between"])
def test_a_rebalance_loses_no_job(jobs: Jobs, count: int, when: str) -> None:
    jobs.create(4)
    records = [{"value": str(each).encode(), "key": str(each).encode()} for each in range(count)]
    first = jobs.worker()
    if when == "between":
        put_all(jobs.kafka, jobs.topic, records)
        until(first, lambda: bool(jobs.done))
    else:
        until(first, lambda: len(first.assigned) == 8)
    second = jobs.worker()

    def step() -> None:
        first.step(0.02)
        second.step(0.02)

    until_done(step, lambda: len(first.assigned) == len(second.assigned) == 4)
    if when == "before":
        put_all(jobs.kafka, jobs.topic, records)
    until_done(step, lambda: jobs.committed() == count)
    assert set(jobs.done) == set(range(count))


# Faults

COMMITS = [
    (error, times)
    for error in (
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "COORDINATOR_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
    )
    for times in (1, 2)
]


@pytest.mark.parametrize(("error", "times"), part_of(COMMITS, 2))
def test_a_commit_is_repeated(jobs: Jobs, error: str, times: int) -> None:
    jobs.create()
    jobs.put("x")
    with jobs.kafka.fault("OffsetCommit", group=jobs.group, error=error, times=times) as fault:
        until(jobs.worker(), lambda: jobs.committed() == 1)
    assert (fault.hits, jobs.done) == (times, ["x"])


PRODUCES: list[tuple[dict[str, Any], int]] = [
    (fault, failures)
    for failures in (1, 5)
    for fault in (
        {"error": "NOT_LEADER_OR_FOLLOWER"},
        {"error": "LEADER_NOT_AVAILABLE"},
        {"error": "NOT_ENOUGH_REPLICAS", "times": 2},
        {"error": "NOT_ENOUGH_REPLICAS_AFTER_APPEND"},
        {"error": "REQUEST_TIMED_OUT", "after_apply": True},
        {"error": "REQUEST_TIMED_OUT", "times": 3},
        {"action": "cut"},
        {"action": "cut-after-apply"},
        {"action": "delay", "seconds": 0.05},
        {"action": "throttle", "ms": 20},
    )
]


@pytest.mark.parametrize(
    ("fault", "failures"), part_of(PRODUCES, 3), ids=lambda each: str(each)[:50]
)
def test_a_job_is_passed_on_exactly_once(jobs: Jobs, fault: Any, failures: int) -> None:
    jobs.create()
    jobs.failures['"x"'] = failures
    jobs.put("x")
    target = jobs.retries if failures == 1 else jobs.dead
    with jobs.kafka.fault("Produce", topic=target, **fault):
        until(jobs.worker(attempts=2), lambda: len(jobs.tried) == 2 and jobs.committed() == 1)
    assert len(read_all(jobs.kafka, jobs.retries)) == 1
    assert len(read_all(jobs.kafka, jobs.dead)) == (failures > 1)


@pytest.mark.parametrize(
    "error", part_of(["MESSAGE_TOO_LARGE", "TOPIC_AUTHORIZATION_FAILED", "INVALID_RECORD"], 1)
)
@pytest.mark.parametrize("target", ["retry", "dead"])
def test_nothing_is_committed_that_could_not_be_passed_on(
    jobs: Jobs, error: str, target: str
) -> None:
    jobs.create()
    jobs.failures['"x"'] = 1
    jobs.put("x")
    worker = jobs.worker(attempts=1 if target == "dead" else 2)
    with (
        jobs.kafka.fault("Produce", topic=f"{jobs.topic}.{target}", error=error),
        jobs.kafka.assert_nothing_produced(jobs.dead, for_ms=0),
        pytest.raises(KafkaException),
    ):
        until(worker, lambda: False)
    assert jobs.committed() == 0


FETCHES: list[dict[str, Any]] = [
    {"error": "NOT_LEADER_OR_FOLLOWER"},
    {"error": "UNKNOWN_TOPIC_OR_PARTITION"},
    {"error": "KAFKA_STORAGE_ERROR"},
    {"error": "FENCED_LEADER_EPOCH"},
    {"action": "cut"},
    {"action": "delay", "seconds": 0.05},
    {"action": "throttle", "ms": 50},
]


@pytest.mark.parametrize(
    "fault", part_of(FETCHES, 1), ids=lambda each: "-".join(map(str, each.values()))
)
@pytest.mark.parametrize("times", [1, 3])
def test_fetches_that_fail_delay_jobs_and_lose_none(jobs: Jobs, fault: Any, times: int) -> None:
    jobs.create()
    with jobs.kafka.fault("Fetch", topic=jobs.topic, times=times, **fault) as rule:
        worker = jobs.worker()
        for number in range(times):
            jobs.put(number)
            until(worker, lambda number=number: len(jobs.done) == number + 1)
        until(worker, lambda: rule.hits == times)
    jobs.put("last")
    until(worker, lambda: "last" in jobs.done)
    assert jobs.done == [*range(times), "last"]
