"""Encoding and decoding returns the same message, for every message and version."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wire
from tests.wire.generate import all_versions, message_strategy, messages, random_message, versions
from wire.interpreter import interpret
from wire.layout import layout

EVERY = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@pytest.mark.slow
@pytest.mark.parametrize("cls", messages(), ids=lambda cls: cls.__name__)
@settings(max_examples=4, deadline=None, suppress_health_check=EVERY)
@given(data=st.data())
def test_any_message_round_trips(cls: type[Any], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions(cls)))
    message = data.draw(message_strategy(cls, version))
    check_round_trip(message, version)


@pytest.mark.slow
def test_every_version_round_trips() -> None:
    random = Random(1)
    for cls, version in all_versions():
        for _ in range(3):
            check_round_trip(random_message(cls, version, random), version)
        check_round_trip(cls(), version)


def check_round_trip(message: Any, version: int) -> None:
    data = wire.encode(message, version)
    decoded, end = wire.decode_from(type(message), version, data, 0)
    assert decoded == message
    assert end == len(data)
    assert wire.encode(decoded, version) == data
    assert b"".join(wire.encode_buffers(message, version)) == data
    assert interpret(message, version) == data
    shifted = memoryview(bytearray(b"??" + data + b"trailing"))
    assert wire.decode_from(type(message), version, shifted, 2) == (message, end + 2)


def test_no_message_is_shorter_than_its_layout_says() -> None:
    random = Random(2)
    for cls, version in all_versions():
        size_min = layout(cls, version).size_min
        assert len(wire.encode(random_message(cls, version, random), version)) >= size_min
