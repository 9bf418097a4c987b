"""A batch of a known shape is scanned as the plain loop scans it, whatever its bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.wire.records.batches import NOW, batch_of_payload, build, columns
from wire.records import RecordBatch, RecordsError, build_batch, scan
from wire.records import frames as frames_module
from wire.records.frames import COUNT_MAX, FRAMES_MAX, find_frame
from wire.records.scan import ScanResult, _scan_plainly


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames_module, "_frames", {})


def outcome(batch: RecordBatch, read: Any) -> ScanResult | str:
    try:
        return read(batch)  # type: ignore[no-any-return]
    except RecordsError as error:
        return repr(error)


def plainly(batch: RecordBatch) -> ScanResult:
    return _scan_plainly(bytes(batch.payload()), batch.record_count, batch.base_timestamp)


def framed(batch: RecordBatch) -> bool:
    return find_frame(len(batch.payload()), batch.record_count) is not None


@given(columns(count_max=150), columns(count_max=150))
@settings(max_examples=200)
def test_a_known_shape_changes_no_answer(first: dict[str, Any], second: dict[str, Any]) -> None:
    for arguments in (first, second):
        batch = RecordBatch(build(arguments))
        expected = outcome(batch, plainly)
        for _ in range(4):
            assert outcome(batch, scan) == expected


@pytest.mark.parametrize("keys", [None, b"key", b""])
@pytest.mark.parametrize("count", [1, 2, 8, 64, 65, 100])
def test_no_byte_around_keys_and_values_escapes(count: int, keys: bytes | None) -> None:
    key_column = None if keys is None else [keys] * count
    stamps = [NOW + index // 5 for index in range(count)]
    good = RecordBatch(build_batch([b"v" * 9] * count, keys=key_column, timestamps=stamps))
    payload = bytes(good.payload())
    for at in range(0, len(payload), 1 if count < 50 else 7):
        for change in (0x01, 0x02, 0x80):
            scan(good)
            scan(good)
            assert framed(good)
            changed = bytearray(payload)
            changed[at] ^= change
            batch = RecordBatch(batch_of_payload(bytes(changed), count))
            assert outcome(batch, scan) == outcome(batch, plainly), (at, change)


def test_a_shape_is_kept_when_it_comes_again() -> None:
    batch = RecordBatch(build_batch([b"v" * 100] * 16, timestamps=NOW))
    found = scan(batch)
    assert not framed(batch)
    assert scan(batch) == found
    assert framed(batch)
    assert scan(batch) == found


@pytest.mark.parametrize("step", [1, 3, -1, 64])
def test_timestamps_are_read_not_compared(step: int) -> None:
    alike = RecordBatch(build_batch([b"v"] * 10, timestamps=NOW))
    scan(alike)
    scan(alike)
    assert framed(alike)
    stamps = [NOW + index % 4 * step for index in range(10)]
    batch = RecordBatch(build_batch([b"v"] * 10, timestamps=stamps))
    assert scan(batch) == plainly(batch)


def test_base_timestamps_at_the_end_of_time_wrap_around_as_in_java() -> None:
    last = (1 << 63) - 1
    batch = RecordBatch(build_batch([b"v"] * 9, timestamps=[NOW, NOW + 1] + [NOW] * 7))
    scan(batch)
    scan(batch)
    assert framed(batch)
    batch.base_timestamp = last
    assert scan(batch) == plainly(batch)


def test_headers_and_odd_offsets_are_not_kept() -> None:
    with_headers = RecordBatch(build_batch([b"v"] * 3, headers=[[("a", b"")]] * 3, timestamps=NOW))
    payload = bytearray(RecordBatch(build_batch([b"v"] * 3, timestamps=NOW)).payload())
    payload[3] = 4  # the first record's offset delta
    for batch in (with_headers, RecordBatch(batch_of_payload(bytes(payload), 3))):
        for _ in range(3):
            assert scan(batch) == plainly(batch)
        assert not framed(batch)


def test_what_is_kept_is_bounded() -> None:
    large = RecordBatch(build_batch([b"v"] * (COUNT_MAX + 1), timestamps=NOW))
    scan(large)
    scan(large)
    assert not framed(large)
    for size in range(3 * FRAMES_MAX):
        batch = RecordBatch(build_batch([b"v" * size], timestamps=NOW))
        scan(batch)
        scan(batch)
        assert len(frames_module._frames) <= FRAMES_MAX
