"""A batch built in this process is treated as its bytes would be, whatever the topic demands."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.storage.log_config import NO_LIMIT, LogConfig
from embedlog.storage.validation.ordinary_batch import ordinary
from embedlog.storage.validation.origin import AppendOrigin
from embedlog.storage.validation.validator import validate
from tests.support import sizes
from wire.records.control import (
    BuiltMarker,
    ControlType,
    EndTransactionMarker,
    build_end_transaction_marker,
)
from wire.records.encode.built import BuiltBatch

NOW = 1_700_000_000_000

stamps = st.sampled_from([-1, 0, NOW - 1000, NOW - 1, NOW, NOW + 1, NOW + 1000, 2**63 - 1])
fields = st.sampled_from([None, b"", b"a", b"value" * 20])
configs = st.fixed_dictionaries(
    {
        "max_message_bytes": st.sampled_from([70, 100, 1_000_000]),
        "segment_bytes": st.sampled_from([80, 120, 1 << 30]),
        "compression_type": st.sampled_from(["producer", "uncompressed", "gzip"]),
        "message_timestamp_type": st.sampled_from(["CreateTime", "LogAppendTime"]),
        "message_timestamp_after_max_ms": st.sampled_from([500, NO_LIMIT]),
        "message_timestamp_before_max_ms": st.sampled_from([500, NO_LIMIT]),
        "cleanup_policy": st.sampled_from(["delete", "compact"]),
    }
)


def outcome(records: Any, config: LogConfig, origin: int = AppendOrigin.CLIENT) -> Any:
    try:
        batch: Any = ordinary(records, config, NOW)
        if batch is None:
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
    facts = (
        batch.size,
        batch.last_offset_delta,
        batch.max_timestamp,
        batch.log_append_time_ms,
        (batch.producer_id, batch.producer_epoch, batch.base_sequence),
        batch.attributes,
    )
    is_built = isinstance(batch, BuiltBatch)
    written = bytes(batch) if is_built else batch.stamped(base_offset=0, leader_epoch=-1)
    return written, facts


@pytest.mark.slow
@given(st.lists(st.tuples(fields, fields, stamps), min_size=1, max_size=6), configs, st.booleans())
@settings(max_examples=sizes.size(120, full=300), deadline=None)
def test_the_validator_treats_both_the_same(
    records: list[tuple[Any, Any, int]], settings: dict[str, Any], has_producer: bool
) -> None:
    values, keys, timestamps = (list(column) for column in zip(*records, strict=True))
    if max(timestamps) - min(timestamps) >= 2**63 or min(timestamps) - timestamps[0] < -(2**62):
        timestamps = [NOW] * len(records)
    built = BuiltBatch(
        values,
        keys=None if keys.count(None) == len(keys) else keys,
        timestamps=timestamps,
        producer=(5, 0, 9) if has_producer else (-1, -1, -1),
    )
    config = LogConfig(**settings)
    assert outcome(built, config) == outcome(bytes(built), config)


def test_an_ordinary_topic_takes_it_without_another_look() -> None:
    built = BuiltBatch([b"a", b"b"], timestamps=NOW)
    batch = ordinary(built, LogConfig(), NOW)
    assert batch is not None
    assert batch is built


def marker(timestamp: int, *, is_commit: bool = True) -> BuiltMarker:
    control_type = ControlType.COMMIT if is_commit else ControlType.ABORT
    return BuiltMarker(
        EndTransactionMarker(control_type, 7),
        producer_id=5,
        producer_epoch=3,
        timestamp=timestamp,
    )


@given(stamps, configs, st.booleans())
@settings(max_examples=sizes.size(40, full=100), deadline=None)
def test_the_validator_treats_a_marker_as_its_bytes(
    timestamp: int, settings: dict[str, Any], is_commit: bool
) -> None:
    built, config = marker(timestamp, is_commit=is_commit), LogConfig(**settings)
    expected = outcome(bytes(built), config, AppendOrigin.COORDINATOR)
    assert outcome(built, config, AppendOrigin.COORDINATOR) == expected


def test_an_ordinary_topic_takes_a_marker_without_another_look() -> None:
    built = marker(NOW)
    assert ordinary(built, LogConfig(cleanup_policy="compact"), NOW) is built


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_built_marker_is_what_the_bytes_of_one_are(is_commit: bool) -> None:
    assert bytes(marker(NOW, is_commit=is_commit)) == build_end_transaction_marker(
        ControlType.COMMIT if is_commit else ControlType.ABORT,
        producer_id=5,
        producer_epoch=3,
        coordinator_epoch=7,
        timestamp=NOW,
    )
