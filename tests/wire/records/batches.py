"""Strategies and samples for the tests of wire.records."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from wire.records import build_batch
from wire.records.encode.joins import encode_record

NOW = 1_700_000_000_000

# Records: (k="k", v="v"), (k=null, v="v2", timestamp + 5, headers h1="x", h2=null).
TWO_RECORDS = bytes.fromhex(
    "00000000000000000000004cffffffff02eccd216b0000000000010000018bcfe568000000018bcfe56805"
    "ffffffffffffffffffffffffffff0000000210000000026b02760022000a020104763204046831027804683201"
)

# Lengths at which a varint grows, with little data.
sizes = st.sampled_from([0, 1, 2, 62, 63, 64, 65, 80, 100, 130])
fields = st.none() | st.builds(
    lambda size, seed: (seed * size)[:size], sizes, st.binary(min_size=1)
)
headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
timestamps = st.sampled_from([-1, 0, NOW, NOW + 1, NOW - 1, NOW + 63, NOW + 64, NOW + 10_000])
int64s = st.integers(-(1 << 63), (1 << 63) - 1)


@st.composite
def columns(draw: Any, count_max: int = 200) -> dict[str, Any]:
    """Arguments of build_batch: long runs of equal lengths with a few exceptions, or all random."""
    count = draw(st.sampled_from([1, 2, 7, 8, 9, 63, 64, 65, 66, 100, 101, 130, count_max]))
    kind = draw(st.sampled_from(["uniform", "nearly", "odd"]))
    values = _column(draw, count, kind, fields)
    keys = draw(st.none() | st.just("keys"))
    if keys is not None:
        keys = _column(draw, count, kind, fields)
    stamps = draw(timestamps)
    if draw(st.booleans()):
        stamps = _column(draw, count, kind, timestamps)
    if draw(st.booleans()):
        step = draw(st.sampled_from([1, 7, 300]))
        stamps = [NOW + index // 3 * step for index in range(count)]
    header_column = None
    if draw(st.integers(0, 4)) == 0:
        header_column = [draw(headers) if index % 5 == 0 else None for index in range(count)]
    return {
        "values": values,
        "keys": keys,
        "timestamps": stamps,
        "headers": header_column,
        "timestamp_type": draw(st.sampled_from([0, 0, 0, 1])),
        "base_offset": draw(st.sampled_from([0, 0, 5, 1 << 40])),
    }


def _column(draw: Any, count: int, kind: str, items: st.SearchStrategy[Any]) -> list[Any]:
    if kind == "odd":
        few = draw(st.lists(items, min_size=1, max_size=12))
        return [few[index * 7 % len(few)] for index in range(count)]
    column = [draw(items)] * count
    if kind == "nearly":
        for _ in range(draw(st.integers(1, 3))):
            column[draw(st.integers(0, count - 1))] = draw(items)
    return column


def build(arguments: dict[str, Any], **more: Any) -> bytes:
    """Return the batch of these columns."""
    arguments = {**arguments, **more}
    return build_batch(arguments.pop("values"), **arguments)


def expected_records(arguments: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the records that a reader must return for these columns."""
    count = len(arguments["values"])
    stamps = arguments["timestamps"]
    stamps = [stamps] * count if isinstance(stamps, int) else stamps
    if arguments["timestamp_type"] == 1:
        stamps = [max(stamps)] * count
    return list(
        zip(
            range(arguments["base_offset"], arguments["base_offset"] + count),
            stamps,
            arguments["keys"] or [None] * count,
            arguments["values"],
            [tuple(items or ()) for items in arguments["headers"] or [None] * count],
            strict=True,
        )
    )


def plain_payload(arguments: dict[str, Any]) -> bytes:
    """Return the records, encoded one by one by the plain encoder."""
    count = len(arguments["values"])
    stamps = arguments["timestamps"]
    stamps = [stamps] * count if isinstance(stamps, int) else stamps
    keys = arguments["keys"] or [None] * count
    header_column = arguments["headers"] or [None] * count
    return b"".join(
        encode_record(
            offset_delta=index,
            timestamp_delta=stamps[index] - stamps[0],
            key=keys[index],
            value=value,
            headers=header_column[index],
        )
        for index, value in enumerate(arguments["values"])
    )


def batch_of_payload(payload: bytes, count: int, *, base_timestamp: int = 0) -> bytes:
    """Return a batch with a valid checksum around any bytes of records."""
    from wire.records.encode.builder import seal
    from wire.records.format import CHECKED_HEAD

    checked = CHECKED_HEAD.pack(
        0, max(count - 1, 0), base_timestamp, base_timestamp, -1, -1, -1, count
    )
    return seal(0, -1, checked, [payload])
