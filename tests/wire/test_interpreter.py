"""The interpreting encoder raises the generated encoder's errors, and gives its bytes."""

from __future__ import annotations

from typing import Any

import pytest

import wire
from wire.interpreter import interpret
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic
from wire.schemas.sasl_handshake import SaslHandshakeRequest


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (SaslHandshakeRequest(mechanism=None), 1),  # type: ignore[arg-type]
        (SaslHandshakeRequest(mechanism=7), 1),  # type: ignore[arg-type]
        (SaslHandshakeRequest(mechanism="\ud800"), 1),
        (SaslHandshakeRequest(mechanism="x" * 32768), 1),
        (MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"short")]), 12),
    ],
)
def test_a_value_that_does_not_fit_is_refused(message: Any, version: int) -> None:
    for encode in (wire.encode, interpret):
        with pytest.raises(wire.InvalidMessage):
            encode(message, version)


def test_a_field_that_the_version_would_lose_is_refused() -> None:
    message = MetadataRequest(topics=[], include_topic_authorized_operations=True)
    for encode in (wire.encode, interpret):
        with pytest.raises(wire.UnsupportedField) as caught:
            encode(message, 1)
        assert "include_topic_authorized_operations" in str(caught.value)
