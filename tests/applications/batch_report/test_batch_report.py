"""Two hundred cases of the batch job, each with a fresh broker."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kafka.errors import KafkaError

from tests.applications.helpers import Found, part_of, put, put_all, read_all

from .app import BatchJob, Report, Slice

pytestmark = [pytest.mark.slow, pytest.mark.interop]

DAY_MS = 86_400_000
START = 1_700_000_000_000
DAY = Slice(START, START + DAY_MS)
FOREVER = {"retention.ms": "-1"}


class Sales:
    """The topics of the job, and the job."""

    def __init__(self, kafka: Any, partitions: int = 3) -> None:
        self.kafka = kafka
        self.source, self.target = kafka.name("sales"), kafka.name("reports")
        for name in (self.source, self.target):
            kafka.create_topic(name, partitions, config=FOREVER)

    def job(self, **producer: Any) -> BatchJob:
        return BatchJob(
            self.kafka.client_config("kafka-python", "consumer"),
            self.kafka.client_config("kafka-python", "producer", **producer),
            self.source,
            self.target,
        )

    def put(self, amount: Any, at_ms: int, key: bytes | None = b"k", **more: Any) -> Any:
        value = json.dumps({"amount": amount}).encode()
        return put(self.kafka, self.source, value, key, timestamp_ms=at_ms, **more)

    def put_all(self, sales: list[tuple[Any, int, bytes]]) -> None:
        put_all(
            self.kafka,
            self.source,
            [
                {"value": json.dumps({"amount": amount}).encode(), "timestamp_ms": at, "key": key}
                for amount, at, key in sales
            ],
        )

    def results(self, part: Slice = DAY) -> tuple[dict[str, Any], list[Found]]:
        """Return the rows of a slice by key, and its markers."""
        found = [
            each
            for each in read_all(self.kafka, self.target)
            if each.headers["slice"] == part.name.encode()
        ]
        rows = {
            (each.key or b"").decode().partition("/")[2]: json.loads(each.value or b"")
            for each in found
            if "marker" not in each.headers
        }
        return rows, [each for each in found if "marker" in each.headers]


@pytest.fixture
def sales(kafka: Any) -> Sales:
    return Sales(kafka)


def row(total: int, count: int) -> dict[str, int]:
    return {"total": total, "count": count}


# Sums

AMOUNTS: list[list[int]] = [
    [0],
    [1],
    [-1],
    [1, -1],
    [10**18],
    [7, 7, 7],
    [3] * 7,
    [0, 0],
    [-5, 2],
    [1, 2, 4, 8, 16],
    [10**30, 10**30],
    list(range(100)),
    [5] * 1_000,
    [-(10**12), 1],
    [2**63 - 1, 1],
]
KEYS = [
    "k",
    "",
    "ä€",
    "🦆",
    "a/b",
    "/",
    "k" * 1_000,
    "\x00",
    "a b",
    "100%",
    "null",
    "1-2",
    "x\ny",
    "\u2028",
]


@pytest.mark.parametrize("amounts", part_of(AMOUNTS, 2), ids=lambda each: repr(each)[:20])
@pytest.mark.parametrize("spread", [True, False])
def test_amounts_of_a_key_are_summed(sales: Sales, amounts: list[int], spread: bool) -> None:
    step = DAY_MS // len(amounts) if spread else 0
    sales.put_all([(each, START + at * step, b"k") for at, each in enumerate(amounts)])
    report = sales.job().run(DAY)
    assert report.rows() == {"k": row(sum(amounts), len(amounts))}
    rows, [marker] = sales.results()
    assert rows == report.rows()
    assert json.loads(marker.value or b"") == {"digest": report.digest(), "unreadable": 0}


@pytest.mark.parametrize("key", part_of(KEYS, 2), ids=lambda each: ascii(each)[:20])
def test_each_key_has_a_result(sales: Sales, key: str) -> None:
    sales.put_all([(1, START, key.encode()), (2, START, b"other"), (4, START, key.encode())])
    assert sales.job().run(DAY).rows() == {key: row(5, 2), "other": row(2, 1)}
    assert sales.results()[0] == {key: row(5, 2), "other": row(2, 1)}
    assert sales.job().find(DAY) is not None


@pytest.mark.parametrize("count", part_of([0, 1, 2, 10, 100, 500], 2))
@pytest.mark.parametrize("partitions", [1, 8])
def test_the_marker_comes_last(kafka: Any, count: int, partitions: int) -> None:
    sales = Sales(kafka, partitions)
    sales.put_all([(each, START, str(each).encode()) for each in range(count)])
    report = sales.job().run(DAY)
    rows, [marker] = sales.results()
    assert rows == report.rows() == {str(each): row(each, 1) for each in range(count)}
    found = read_all(kafka, sales.target)
    assert {each.partition for each in found} == {marker.partition}
    assert marker == found[-1]


# The edges of a slice

EDGES = [
    (offset, length)
    for length in (1, 1_000, DAY_MS)
    for offset in (-DAY_MS, -1, 0, 1, length - 1, length, length + 1, DAY_MS * 2)
]


@pytest.mark.parametrize(("offset", "length"), part_of(EDGES, 4))
def test_a_slice_has_its_start_and_not_its_end(sales: Sales, offset: int, length: int) -> None:
    sales.put(7, START + offset)
    expected = {"k": row(7, 1)} if 0 <= offset < length else {}
    assert sales.job().run(Slice(START, START + length)).rows() == expected


ORDERS = [
    (order, partition)
    for order in (
        [0, 1, 2],
        [2, 1, 0],
        [-1, 0, 1],
        [0, -1, 1],
        [DAY_MS, 0, 1],
        [0, DAY_MS, 1],
        [0, 1, DAY_MS],
        [DAY_MS, DAY_MS - 1, -1],
        [-1, DAY_MS, 5],
    )
    for partition in (0, 2)
]


@pytest.mark.parametrize(("order", "partition"), part_of(ORDERS, 2))
def test_late_records_belong_to_the_slice_of_their_time(
    sales: Sales, order: list[int], partition: int
) -> None:
    for each in order:
        sales.put(1, START + each, partition=partition)
    count = sum(0 <= each < DAY_MS for each in order)
    assert sales.job().run(DAY).counts == ({"k": count} if count else {})


SLICES = [(count, width) for count in (2, 3, 5, 7) for width in (1, 50, 1_000)]


@pytest.mark.parametrize(("count", "width"), part_of(SLICES, 2))
def test_slices_side_by_side_count_each_record_once(sales: Sales, count: int, width: int) -> None:
    records = 5 * count
    step = max(1, count * width // records)
    times = [START + (number * step) % (count * width) for number in range(records)]
    sales.put_all([(1, each, b"k") for each in times])
    job = sales.job()
    reports = [
        job.run(Slice(START + number * width, START + (number + 1) * width))
        for number in range(count)
    ]
    assert sum(each.counts.get("k", 0) for each in reports) == records


@pytest.mark.parametrize("end", part_of([0, -1, -DAY_MS], 1))
def test_an_empty_slice_is_refused(sales: Sales, end: int) -> None:
    with pytest.raises(ValueError, match="is empty"):
        sales.job().run(Slice(START, START + end))
    assert read_all(sales.kafka, sales.target) == []


# Records that nobody can read

POISON: list[bytes] = [
    b"",
    b"{",
    b"[]",
    b"1",
    b"null",
    b"{}",
    b"\xff",
    b"\x00\x00\x00\x00\x01x",
    b'{"amount": null}',
    b'{"amount": "1"}',
    b'{"amount": 1.0}',
    b'{"amount": true}',
    b'{"amount": []}',
    b'{"amount": NaN}',
    b'{"Amount": 1}',
    b"[" * 100_000,
    b"x" * 500_000,
]


@pytest.mark.parametrize("value", part_of(POISON, 3), ids=lambda each: repr(each)[:20])
def test_an_unreadable_record_is_counted(sales: Sales, value: bytes) -> None:
    sales.put(1, START)
    put(sales.kafka, sales.source, value, b"k", timestamp_ms=START)
    sales.put(2, START)
    report = sales.job().run(DAY)
    assert (report.rows(), report.unreadable) == ({"k": row(3, 2)}, 1)
    again = sales.job().run(DAY)
    assert (again.rows(), again.unreadable, again.is_new) == ({"k": row(3, 2)}, 1, False)


@pytest.mark.parametrize("where", part_of([[0], [1], [2], [0, 1, 2]], 1), ids=str)
def test_a_tombstone_says_nothing(sales: Sales, where: list[int]) -> None:
    for number in range(3):
        if number in where:
            put(sales.kafka, sales.source, None, b"k", timestamp_ms=START)
        sales.put(1, START)
    report = sales.job().run(DAY)
    assert (report.rows(), report.unreadable) == ({"k": row(3, 3)}, 0)


CODECS = [
    (codec, count) for codec in ("none", "gzip", "lz4", "snappy", "zstd") for count in (1, 300)
]


@pytest.mark.parametrize(("codec", "count"), part_of(CODECS, 2))
def test_compressed_records_are_read(sales: Sales, codec: str, count: int) -> None:
    producer = sales.kafka.producer(compression_type=codec)
    for number in range(count):
        producer.send(sales.source, b'{"amount": 2}', b"k", timestamp_ms=START + number)
    producer.flush(30)
    assert sales.job().run(DAY).rows() == {"k": row(2 * count, count)}


# Runs that are repeated

REPEATS = [(runs, later) for runs in (2, 3, 5) for later in (False, True)]


@pytest.mark.parametrize(("runs", "later"), part_of(REPEATS, 1))
def test_a_repeated_run_writes_nothing(sales: Sales, runs: int, later: bool) -> None:
    sales.put(1, START)
    first = sales.job().run(DAY)
    before = read_all(sales.kafka, sales.target)
    for _ in range(1, runs):
        if later:
            sales.put(5, START)  # too late: the slice is closed
        again = sales.job().run(DAY)
        assert (again.is_new, again.rows()) == (False, first.rows())
    assert read_all(sales.kafka, sales.target) == before


@pytest.mark.parametrize("left", part_of([[], ["a"], ["a", "b"], ["a", "b", "z"]], 1), ids=str)
def test_a_run_that_broke_off_is_done_again(sales: Sales, left: list[str]) -> None:
    sales.put_all([(1, START, b"a"), (2, START, b"b")])
    truth = {"a": row(1, 1), "b": row(2, 1)}
    for name in left:  # what a run without a marker left behind
        put(
            sales.kafka,
            sales.target,
            json.dumps(truth.get(name, row(9, 9))).encode(),
            f"{DAY.name}/{name}".encode(),
            headers=[("slice", DAY.name.encode())],
            partition=0,
        )
    assert sales.job().find(DAY) is None
    report = sales.job().run(DAY)
    assert (report.is_new, report.rows()) == (True, truth)
    assert len(sales.results()[1]) == 1


@pytest.mark.parametrize("digest", ["", "0" * 64])
def test_results_that_do_not_fit_their_marker_are_refused(sales: Sales, digest: str) -> None:
    marker = json.dumps({"digest": digest, "unreadable": 0}).encode()
    headers = [("slice", DAY.name.encode()), ("marker", b"done")]
    put(sales.kafka, sales.target, marker, DAY.name.encode(), headers=headers)
    with pytest.raises(ValueError, match="do not fit"):
        sales.job().run(DAY)


# Transactions, gaps, faults

TRANSACTIONS = [(committed, aborted) for committed in (0, 1, 5, 50) for aborted in (1, 5, 50)]


@pytest.mark.parametrize(("committed", "aborted"), part_of(TRANSACTIONS, 1))
def test_aborted_sales_do_not_count(sales: Sales, committed: int, aborted: int) -> None:
    with sales.kafka.producer(transactional_id="till") as till:
        till.init_transactions()
        for count, end in ((aborted, "abort"), (committed, "commit")):
            till.begin_transaction()
            for _ in range(count):
                till.send(sales.source, b'{"amount": 1}', b"k", timestamp_ms=START)
            till.flush(30)
            _ = till.abort_transaction() if end == "abort" else till.commit_transaction()
    expected = {"k": row(committed, committed)} if committed else {}
    assert sales.job().run(DAY).rows() == expected


@pytest.mark.parametrize("gap", part_of([1, 10, 1_000, 10**6, 2**40], 1))
def test_gaps_of_offsets_are_passed(sales: Sales, gap: int) -> None:
    topic = sales.kafka.topic(sales.source, value="json")
    topic.put({"amount": 1}, "k", timestamp=START, partition=0)
    topic.skip(gap, partition=0)
    topic.put({"amount": 2}, "k", timestamp=START + 1, partition=0)
    assert sales.job().run(DAY).rows() == {"k": row(3, 2)}


READS: list[tuple[str, dict[str, Any]]] = [
    *(
        (api, {"error": error, "times": times})
        for api in ("ListOffsets", "Fetch")
        for error in ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "KAFKA_STORAGE_ERROR")
        for times in (1, 2)
    ),
    ("Fetch", {"action": "cut"}),
    ("Fetch", {"action": "delay", "seconds": 0.05}),
    ("Fetch", {"action": "throttle", "ms": 50}),
]


@pytest.mark.parametrize(
    ("api", "fault"), part_of(READS, 3), ids=lambda each: str(each)[:60].replace(" ", "")
)
def test_reads_survive_passing_faults(sales: Sales, api: str, fault: dict[str, Any]) -> None:
    sales.put_all([(number, START + number, str(number % 5).encode()) for number in range(20)])
    with sales.kafka.fault(api, topic=sales.source, **fault):
        report = sales.job().run(DAY)
    assert sum(report.counts.values()) == 20
    assert sum(report.totals.values()) == sum(range(20))


WRITES: list[dict[str, Any]] = [
    {"error": "NOT_LEADER_OR_FOLLOWER"},
    {"error": "NOT_ENOUGH_REPLICAS", "times": 2},
    {"error": "NOT_ENOUGH_REPLICAS_AFTER_APPEND"},
    {"action": "cut"},
    {"action": "cut-after-apply"},
    {"action": "delay", "seconds": 0.05},
]


@pytest.mark.parametrize("fault", part_of(WRITES, 2), ids=lambda each: str(each)[:60])
def test_writes_survive_passing_faults(sales: Sales, fault: dict[str, Any]) -> None:
    sales.put_all([(number, START, str(number).encode()) for number in range(5)])
    with sales.kafka.fault("Produce", topic=sales.target, **fault):
        report = sales.job().run(DAY)
    rows, [_] = sales.results()
    assert rows == report.rows() == {str(number): row(number, 1) for number in range(5)}
    assert len(read_all(sales.kafka, sales.target)) == 6


@pytest.mark.parametrize(
    "error", part_of(["MESSAGE_TOO_LARGE", "TOPIC_AUTHORIZATION_FAILED", "INVALID_RECORD"], 1)
)
@pytest.mark.parametrize("nth", [1, 2])
def test_a_run_that_cannot_write_leaves_no_marker(sales: Sales, error: str, nth: int) -> None:
    sales.put(1, START)
    with (
        sales.kafka.fault("Produce", topic=sales.target, error=error, nth=nth),
        pytest.raises(KafkaError),
    ):
        sales.job().run(DAY)
    rows, markers = sales.results()
    assert (len(rows), markers) == (nth - 1, [])
    assert sales.job().run(DAY).rows() == {"k": row(1, 1)}
    assert isinstance(sales.job().find(DAY), Report)
