"""Reading: runs, columns and chains equal the plain loop, in valid and malformed batches."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import sizes
from tests.wire.records.batches import (
    NOW,
    batch_of_payload,
    build,
    columns,
    expected_records,
    int64s,
)
from wire.records import InvalidRecord, RecordBatch, RecordsError, build_batch, scan, tuples
from wire.records.decode.chain import find_fields
from wire.records.decode.columns import RecordColumns
from wire.records.decode.loop import parse_records
from wire.records.decode.rows import plain_tuples
from wire.records.decode.runs import find_runs
from wire.records.decode.scan import ScanResult, scan_plainly
from wire.records.encode.joins import encode_record
from wire.records.varint import encode_varint


def outcome(call: Any, *arguments: Any) -> Any:
    """Return the result of a call, or its error about the bytes."""
    try:
        return call(*arguments)
    except RecordsError as error:
        return (type(error), str(error))


def rows_of(found: RecordColumns) -> list[tuple[Any, ...]]:
    """Return columns as rows, cut out of their buffer at their positions."""
    view = memoryview(found.buffer)
    rows = zip(
        found.offsets.tolist(),
        found.timestamps.tolist(),
        found.key_positions.tolist(),
        found.key_sizes.tolist(),
        found.value_positions.tolist(),
        found.value_sizes.tolist(),
        strict=True,
    )
    return [
        (
            offset,
            timestamp,
            None if key_size < 0 else bytes(view[key : key + key_size]),
            None if value_size < 0 else bytes(view[value : value + value_size]),
        )
        for offset, timestamp, key, key_size, value, value_size in rows
    ]


def assert_all_forms_agree(batch: RecordBatch) -> None:
    """Check that every form of reading returns the plain loop's result or raises its error."""
    payload = bytes(batch.payload())
    count = batch.record_count
    plain = outcome(plain_tuples, batch, payload)
    assert outcome(tuples, batch) == plain
    assert outcome(scan, batch) == outcome(scan_plainly, payload, count, batch.base_timestamp)
    found = outcome(batch.columns)
    if isinstance(plain, tuple):
        assert found == plain
        assert find_runs(payload, count) is None
        return
    assert rows_of(found) == [row[:4] for row in plain]
    assert found.keys() == [row[2] for row in plain]
    assert found.values() == [row[3] for row in plain]
    assert (find_runs(payload, count) is None) == (find_runs(memoryview(payload), count) is None)


@pytest.mark.slow
@given(columns(count_max=300))
@settings(max_examples=sizes.size(80, full=200))
def test_all_forms_agree(arguments: dict[str, Any]) -> None:
    batch = RecordBatch(build(arguments))
    assert tuples(batch) == expected_records(arguments)
    assert_all_forms_agree(batch)


@pytest.mark.slow
@given(columns(), st.randoms(use_true_random=False))
@settings(max_examples=sizes.size(120, full=300))
def test_mutated_batches_fail_alike_and_only_with_typed_errors(
    arguments: dict[str, Any], random: Random
) -> None:
    payload = bytearray(RecordBatch(build(arguments)).payload())
    count = len(arguments["values"])
    for _ in range(random.choice([1, 1, 2, 5])):
        mutate(payload, random)
    count += random.choice([0, 0, 0, -1, 1, 1000])
    assert_all_forms_agree(RecordBatch(batch_of_payload(bytes(payload), max(count, 1))))


def mutate(payload: bytearray, random: Random) -> None:
    """Change, insert, remove or move bytes."""
    if not payload:
        return
    at = random.randrange(len(payload))
    kind = random.randrange(5)
    if kind == 0:
        payload[at] ^= 1 << random.randrange(8)
    elif kind == 1:
        payload[at] = random.choice([0, 1, 0x7F, 0x80, 0xFF])
    elif kind == 2:
        payload.insert(at, random.randrange(256))
    elif kind == 3:
        del payload[at : at + random.choice([1, 1, 7])]
    else:
        payload[at:at] = payload[: random.randrange(20)]


@pytest.mark.slow
@pytest.mark.parametrize("keys", [None, b"key", b""])
@pytest.mark.parametrize("count", [8, 64, 65, 100, 130])
def test_every_byte_changed_of_a_near_uniform_batch(count: int, keys: bytes | None) -> None:
    """The column checks cover every header byte: each change gives the plain loop's result."""
    key_column = None if keys is None else [keys] * count
    payload = bytes(
        RecordBatch(build_batch([b"v" * 9] * count, keys=key_column, timestamps=NOW)).payload()
    )
    for at in range(0, len(payload), 1 if count < 100 else 7):
        for change in (0x01, 0x80):
            changed = bytearray(payload)
            changed[at] ^= change
            assert_all_forms_agree(RecordBatch(batch_of_payload(bytes(changed), count)))


def test_values_that_imitate_record_headers() -> None:
    """A shorter value followed by a longer one that imitates the guessed records."""
    count = 40
    template = bytes(RecordBatch(build_batch([b"v" * 20] * count, timestamps=NOW)).payload())
    stride = len(template) // count
    for place in range(1, count - 1):
        records = [template[stride * index : stride * (index + 1)] for index in range(count)]
        short = encode_record(offset_delta=place, timestamp_delta=0, key=None, value=b"v" * 10)
        imitation = records[place + 1]
        # The last byte of the imitation is a header count of 0, as at the end of a record.
        value = b"w" * (2 * stride - len(short) - 6 - stride) + imitation[:-1]
        long = encode_record(offset_delta=place + 1, timestamp_delta=0, key=None, value=value)
        assert long.endswith(imitation)
        assert len(short) + len(long) == 2 * stride
        records[place : place + 2] = [short, long]
        assert [row[3] for row in tuples(RecordBatch(batch_of_payload(b"".join(records), count)))][
            place : place + 2
        ] == [b"v" * 10, value]
        assert_all_forms_agree(RecordBatch(batch_of_payload(b"".join(records), count)))


def test_longer_forms_of_varints_are_read() -> None:
    """Like Kafka, read a number that is encoded with more bytes than necessary."""

    def long(number: int) -> bytes:
        encoded = bytearray(encode_varint(number))
        encoded[-1] |= 0x80
        return bytes(encoded + b"\x00")

    for written_long in range(6):
        records = []
        for index in range(120):
            numbers = [0, index, -1, 3]
            writers = [long if written_long == place else encode_varint for place in range(5)]
            body = b"\x00" + b"".join(writers[p](n) for p, n in enumerate(numbers)) + b"abc"
            body += writers[4](0)
            records.append((long if written_long == 5 else encode_varint)(len(body)) + body)
        batch = RecordBatch(batch_of_payload(b"".join(records), 120))
        assert_all_forms_agree(batch)
        assert [row[3] for row in tuples(batch)] == [b"abc"] * 120


def test_attributes_and_odd_header_keys_are_tolerated() -> None:
    body = b"\x55" + b"\x00\x00" + b"\x01\x01" + b"\x02" + b"\x04\xff\xfe" + b"\x02v"
    batch = RecordBatch(batch_of_payload(encode_varint(len(body)) + body, 1))
    assert scan(batch).consecutive
    assert tuples(batch) == [(0, 0, None, None, (("\ufffd\ufffd", b"v"),))]
    record = encode_record(offset_delta=0, timestamp_delta=0, key=None, value=b"value")
    uniform = b"".join(
        encode_varint(len(record) - 1) + b"\x07" + b"\x00" + encode_varint(index) + record[4:]
        for index in range(60)
    )
    assert_all_forms_agree(RecordBatch(batch_of_payload(uniform, 60)))
    assert len(tuples(RecordBatch(batch_of_payload(uniform, 60)))) == 60


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x00\x00\x00\x01\x01\x01", "-1 headers"),
        (b"\x00\x00\x00\x01\x01\x02\x01\x01", "header key of -1"),
        (b"\x00\x00\x00\x01\x01\x00\x00", "end at"),
        (b"\x00\x00\x00\x01\x01\x02", "ends? early"),
        (b"\x00\x00\x00\x01\x7e\x00", "ends? early"),
        (b"\x00\x00\x80\x80\x80\x80\x80\x00\x01\x01\x00", "longer than 5"),
        (b"\x00" + b"\x80" * 10 + b"\x00\x00\x01\x01\x00", "longer than 10"),
        (b"", "early"),
    ],
)
def test_invalid_records_are_named(body: bytes, reason: str) -> None:
    good = encode_record(offset_delta=0, timestamp_delta=0, key=None, value=b"v")
    payload = good + encode_varint(len(body)) + body
    for read in (tuples, scan, RecordBatch.columns, RecordBatch.records):
        with pytest.raises(InvalidRecord, match=reason) as caught:
            read(RecordBatch(batch_of_payload(payload, 2)))
        assert caught.value.index == 1


@pytest.mark.parametrize("count", [1, 10, 200])
def test_counts_that_do_not_fit(count: int) -> None:
    payload = bytes(RecordBatch(build_batch([b"v"] * count, timestamps=NOW)).payload())
    for wrong, index in ((count + 1, count), (count + 1000, count), (2**31 - 1, count)):
        with pytest.raises(InvalidRecord, match="early") as caught:
            tuples(RecordBatch(batch_of_payload(payload, wrong)))
        assert caught.value.index == index
    if count > 1:
        with pytest.raises(InvalidRecord, match="after the last") as caught:
            scan(RecordBatch(batch_of_payload(payload, count - 1)))
        assert caught.value.index == -1
    with pytest.raises(InvalidRecord, match="a batch of -1 records"):
        scan(RecordBatch(batch_of_payload(payload, -1)))


def test_a_length_beyond_the_batch_is_invalid() -> None:
    record = encode_record(offset_delta=0, timestamp_delta=0, key=None, value=b"v" * 30)
    with pytest.raises(InvalidRecord, match="remain"):
        tuples(RecordBatch(batch_of_payload(record[:-1], 1)))
    with pytest.raises(InvalidRecord, match="bytes long"):
        tuples(RecordBatch(batch_of_payload(b"\x01" + record[1:], 1)))


@pytest.mark.parametrize("deltas", [[0, 2, 3], [1, 2, 3], [0, 0, 0], [2, 1, 0], [0, -1, -2]])
def test_odd_offset_deltas_are_read_and_reported(deltas: list[int]) -> None:
    payload = b"".join(
        encode_record(offset_delta=delta, timestamp_delta=0, key=b"k", value=b"v")
        for delta in deltas
    )
    batch = RecordBatch(batch_of_payload(payload, 3))
    assert [row[0] for row in tuples(batch)] == deltas
    assert not scan(batch).consecutive
    assert_all_forms_agree(batch)


@pytest.mark.parametrize("count", [5, 150])
def test_gaps_of_compaction(count: int) -> None:
    payload = b"".join(
        encode_record(offset_delta=3 * index + 1, timestamp_delta=0, key=b"k", value=b"v" * 40)
        for index in range(count)
    )
    batch = RecordBatch(batch_of_payload(payload, count))
    assert_all_forms_agree(batch)
    assert batch.columns().offsets.tolist() == [3 * index + 1 for index in range(count)]


def test_scan_tells_what_an_append_needs() -> None:
    built = build_batch(
        [b"v"] * 5,
        keys=[b"a", b"b", None, b"c", None],
        timestamps=[NOW, NOW + 9, NOW - 4, NOW + 9, NOW],
    )
    assert scan(RecordBatch(built)) == ScanResult(NOW + 9, NOW - 4, 2, True)
    for count in (3, 50, 300):
        values = [b"v" * (index % 5) for index in range(count)]
        for column in (values, [b"v"] * count):
            built = build_batch(column, keys=[b"k"] * count, timestamps=-1)
            assert scan(RecordBatch(built)) == ScanResult(-1, -1, -1, True)


@given(st.lists(int64s, min_size=1, max_size=3), st.sampled_from([3, 40, 130]), int64s)
def test_timestamps_beyond_64_bits_wrap_alike(
    deltas: list[int], count: int, base_timestamp: int
) -> None:
    payload = b"".join(
        encode_record(
            offset_delta=index,
            timestamp_delta=deltas[index % len(deltas)],
            key=None,
            value=b"v" * (index % 2),
        )
        for index in range(count)
    )
    batch = RecordBatch(batch_of_payload(payload, count, base_timestamp=base_timestamp))
    assert_all_forms_agree(batch)
    limits = np.iinfo(np.int64)
    assert all(limits.min <= row[1] <= limits.max for row in tuples(batch))


def test_the_fast_forms_take_what_they_are_for() -> None:
    """Uniform batches use runs, varying ones chains: neither falls back to the plain loop."""
    stamps = [NOW + index // 20 for index in range(10_000)]
    uniform = build_batch([b"v" * 100] * 10_000, timestamps=stamps)
    runs = find_runs(bytes(RecordBatch(uniform).payload()), 10_000)
    assert runs is not None
    assert len(runs) <= 5
    numbered = build_batch(
        [b"v" * 100] * 5000, keys=[b"key-%d" % index for index in range(5000)], timestamps=NOW
    )
    assert find_runs(bytes(RecordBatch(numbered).payload()), 5000) is not None
    varying = build_batch(
        [b"v" * (index * 7 % 90) for index in range(500)], timestamps=stamps[:500]
    )
    payload = bytes(RecordBatch(varying).payload())
    assert find_runs(payload, 500) is None
    found = find_fields(payload, 500)
    assert found is not None
    assert found.value_sizes.tolist() == [field[5] for field in parse_records(payload, 500)]


def test_columns_are_views_of_an_uncompressed_batch() -> None:
    buffer = bytearray(build_batch([b"abc"] * 20, timestamps=NOW))
    found = RecordBatch(buffer).columns()
    position = int(found.value_positions[7])
    buffer[61 + position] = ord("x")
    assert bytes(found.buffer[position : position + 3]) == b"xbc"


@pytest.mark.parametrize("size", [100, 1000, 20_000])
def test_large_payloads_are_read_from_a_view(size: int) -> None:
    values = [bytes([index % 251]) * size for index in range(150)]
    for column in (values, [value[: len(value) - index % 3] for index, value in enumerate(values)]):
        batch = RecordBatch(memoryview(bytearray(build_batch(column, timestamps=NOW))))
        assert_all_forms_agree(batch)
        assert batch.columns().values() == column
