"""The short way takes the same batches, and refuses the same, as the single checks."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.storage.log_config import NO_LIMIT, LogConfig
from embedlog.storage.validation.ordinary_batch import ordinary
from embedlog.storage.validation.origin import AppendOrigin
from embedlog.storage.validation.validated_batch import ValidatedBatch
from embedlog.storage.validation.validator import validate
from tests.storage.logs import new_log
from tests.support import sizes
from wire.records.crc32c import crc32c
from wire.records.encode.builder import build_batch
from wire.records.encode.built import BuiltBatch
from wire.records.format import HEADER_SIZE
from wire.records.known import KNOWN

NOW = 1_700_000_000_000

# The position and form of each header field, and values that a stranger may have written.
HEADER_FIELDS: list[tuple[int, str, Sequence[int]]] = [
    (0, ">q", (1, -1)),
    (8, ">i", (-1, 0, 13, 60)),
    (12, ">i", (0, 7)),
    (16, ">b", (0, 1, 3, -1)),
    (21, ">h", (1, 5, 8, 16, 32, 64, 128, -1)),
    (23, ">i", (-1, 0, 2, 5, 2**31 - 1)),
    (27, ">q", (-1, 0, -(2**63), 2**63 - 1, 2**63 - 40, NOW - 1, NOW + 5)),
    (35, ">q", (-1, 0, -(2**63), 2**63 - 1, NOW - 1, NOW + 1000)),
    (43, ">q", (-2, 0, 5)),
    (51, ">h", (-1, 3)),
    (53, ">i", (-1, 0, 2**31 - 1)),
    (57, ">i", (-1, 0, 1, 2, 2**31 - 1)),
]

header_changes = st.lists(
    st.sampled_from(HEADER_FIELDS).flatmap(
        lambda field: st.tuples(st.just(field[0]), st.just(field[1]), st.sampled_from(field[2]))
    ),
    max_size=2,
)
configs = st.fixed_dictionaries(
    {},
    optional={
        "max_message_bytes": st.sampled_from([70, 100]),
        "segment_bytes": st.sampled_from([80, 120]),
        "compression_type": st.sampled_from(["uncompressed", "gzip"]),
        "message_timestamp_type": st.just("LogAppendTime"),
        "message_timestamp_after_max_ms": st.sampled_from([20, NO_LIMIT]),
        "message_timestamp_before_max_ms": st.sampled_from([20, NO_LIMIT]),
        "cleanup_policy": st.just("compact"),
    },
)


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    KNOWN.forget()


def meet(batch: bytes) -> None:
    """Make the shape of the batch's records known."""
    for _ in range(2):
        validate(batch, config=LogConfig(), origin=AppendOrigin.CLIENT, now_ms=2**62)


def outcome(records: bytes, config: LogConfig, origin: int) -> Any:
    try:
        batch = validate(
            records,
            config=config,
            origin=origin,
            now_ms=NOW,
            log_start_offset=42,
            topic_partition=TopicPartition("topic", 3),
        )
    except errors.KafkaError as error:
        return error.code, error.message, error.log_start_offset, error.record_errors
    return facts(batch)


def facts(batch: ValidatedBatch) -> tuple[Any, ...]:
    """Return the batch's facts and its bytes, however they are split."""
    names = [name for name in ValidatedBatch.__slots__ if name != "checked"]
    written = batch.stamped(base_offset=7, leader_epoch=3)
    return written, [getattr(batch, name) for name in names]


def sealed(batch: bytearray) -> bytes:
    struct.pack_into(">I", batch, 17, crc32c(batch[21:]))
    return bytes(batch)


@pytest.mark.slow
@settings(max_examples=sizes.size(160, full=400), deadline=None)
@given(
    deltas=st.lists(st.integers(-70, 70), min_size=1, max_size=6),
    has_keys=st.booleans(),
    has_producer=st.booleans(),
    header=header_changes,
    body=st.one_of(st.none(), st.tuples(st.integers(0, 200), st.integers(1, 255))),
    is_sealed=st.booleans(),
    cut=st.sampled_from([0, 0, 0, 1, -1]),
    config=configs,
    origin=st.sampled_from([AppendOrigin.CLIENT, AppendOrigin.COORDINATOR]),
)
@example([0], False, False, [], None, True, 0, {}, AppendOrigin.CLIENT)
@example(
    [0],
    False,
    False,
    [(57, ">i", 0)],
    None,
    True,
    0,
    {"compression_type": "gzip"},
    AppendOrigin.COORDINATOR,
)
def test_what_is_taken_at_one_look_is_what_the_checks_one_by_one_take(
    deltas: list[int],
    has_keys: bool,
    has_producer: bool,
    header: list[tuple[int, str, int]],
    body: tuple[int, int] | None,
    is_sealed: bool,
    cut: int,
    config: dict[str, Any],
    origin: int,
) -> None:
    count = len(deltas)
    good = build_batch(
        [b"value"] * count,
        keys=[b"k"] * count if has_keys else None,
        timestamps=[NOW + delta for delta in deltas],
        **({"producer_id": 5, "producer_epoch": 0, "base_sequence": 9} if has_producer else {}),
    )
    changed = bytearray(good)
    for position, form, value in header:
        struct.pack_into(form, changed, position, value)
    if body is not None:
        changed[HEADER_SIZE + body[0] % (len(good) - HEADER_SIZE)] ^= body[1]
    sent = sealed(changed) if is_sealed else bytes(changed)
    sent = sent[: len(sent) - 1] if cut > 0 else sent + bytes(-cut)
    log_config = LogConfig(**config)
    expected = outcome(sent, log_config, origin)
    meet(good)
    found = ordinary(sent, log_config, NOW)
    if found is not None:
        assert facts(found) == expected


@pytest.mark.parametrize("count", [1, 2, 16, 100])
@pytest.mark.parametrize("key", [None, b"key"])
@pytest.mark.parametrize("producer_id", [-1, 8])
def test_what_producers_send_again_and_again_is_ordinary(
    count: int, key: bytes | None, producer_id: int
) -> None:
    for round_number in range(3):
        sent = build_batch(
            [b"%03d" % index for index in range(count)],
            keys=None if key is None else [key] * count,
            timestamps=[NOW + index // 3 + round_number for index in range(count)],
            producer_id=producer_id,
            producer_epoch=min(producer_id, 0),
            base_sequence=-1 if producer_id < 0 else round_number * count,
        )
        found = ordinary(memoryview(sent), LogConfig(), NOW)
        validate(sent, config=LogConfig(), origin=AppendOrigin.CLIENT, now_ms=NOW)
    assert found is not None
    assert found.stamped(base_offset=0, leader_epoch=-1) == sent
    (checked,) = found.checked
    assert isinstance(checked, memoryview)
    assert checked.obj is sent


GOOD = {"timestamps": [NOW - 30, NOW], "keys": [b"k", b"k"]}


def _good(**fields: Any) -> bytearray:
    return bytearray(build_batch([b"one", b"two"], **{**GOOD, **fields}))


def _with(position: int, form: str, value: int, **fields: Any) -> bytes:
    changed = _good(**fields)
    struct.pack_into(form, changed, position, value)
    return sealed(changed)


@pytest.mark.parametrize(
    ("sent", "config"),
    [
        (bytes(_good()[:-2] + b"X\0"), {}),
        (_with(0, ">q", 4), {}),
        (_with(16, ">b", 3), {}),
        (_with(23, ">i", 5), {}),
        (_with(35, ">q", NOW + 9), {}),
        (_with(57, ">i", 1), {}),
        (_with(53, ">i", -1, producer_id=5, producer_epoch=0, base_sequence=9), {}),
        (bytes(_good()), {"message_timestamp_before_max_ms": 20}),
        (bytes(_good(timestamps=[NOW, NOW + 30])), {"message_timestamp_after_max_ms": 20}),
        (bytes(_good()), {"max_message_bytes": 70}),
        (bytes(_good()), {"segment_bytes": 70}),
        (bytes(_good()), {"compression_type": "gzip"}),
        (bytes(_good()), {"message_timestamp_type": "LogAppendTime"}),
        (bytes(_good(keys=None)), {"cleanup_policy": "compact"}),
    ],
)
def test_what_has_to_be_refused_or_changed_is_not_ordinary(
    sent: bytes, config: dict[str, Any]
) -> None:
    fields = {"keys": None} if config.get("cleanup_policy") else {}
    good = bytes(_good(**fields))
    meet(good)
    assert ordinary(good, LogConfig(), NOW) is not None
    assert ordinary(sent, LogConfig(**config), NOW) is None


def test_a_flipped_bit_of_a_value_is_refused_though_its_shape_is_known() -> None:
    good = _good()
    meet(bytes(good))
    log = new_log()
    good[-3] ^= 1
    with pytest.raises(errors.CorruptMessage):
        log.append_as_leader(bytes(good), leader_epoch=0, now_ms=NOW)
    assert log.log_end_offset == 0


@pytest.mark.parametrize(
    ("fields", "config"),
    [
        ({"producer": (5, 0, -1)}, {}),
        ({"keys": [b"k", None]}, {"cleanup_policy": "compact"}),
        ({"timestamps": [NOW - 30, NOW]}, {"message_timestamp_before_max_ms": 20}),
        ({"timestamps": [NOW, NOW + 30]}, {"message_timestamp_after_max_ms": 20}),
        ({"timestamps": -1}, {}),
        ({}, {"compression_type": "gzip"}),
        ({}, {"max_message_bytes": 70}),
    ],
)
def test_a_built_batch_is_compared_with_the_settings(
    fields: dict[str, Any], config: dict[str, Any]
) -> None:
    batch = BuiltBatch([b"one", b"two"], **{"timestamps": NOW, **fields})
    assert ordinary(batch, LogConfig(**config), NOW) is None
