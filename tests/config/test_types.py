"""Texts, values, rules and messages of settings, in the words of a Kafka 4.4 broker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedlog.config import types
from embedlog.errors import ConfigError


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (types.INT, " 5 ", 5),
        (types.INT, "+5", 5),
        (types.LONG, "-9223372036854775808", -(2**63)),
        (types.BOOLEAN, "TRUE", True),
        (types.BOOLEAN, "false", False),
        (types.DOUBLE, "2", 2.0),
        (types.LIST, "compact, delete,delete", ("compact", "delete")),
        (types.LIST, "", ()),
        (types.STRING, " a b ", "a b"),
        (types.PASSWORD, "secret", "secret"),
    ],
)
def test_text_becomes_a_value(type_: int, text: str, value: object) -> None:
    assert types.parse("some.key", type_, text) == value


@pytest.mark.parametrize(
    ("type_", "text", "reason"),
    [
        (types.INT, "x", "Not a number of type INT"),
        (types.INT, "99999999999", "Not a number of type INT"),
        (types.INT, "1_000", "Not a number of type INT"),
        (types.INT, "", "Not a number of type INT"),
        (types.SHORT, "40000", "Not a number of type SHORT"),
        (types.LONG, "1.5", "Not a number of type LONG"),
        (types.DOUBLE, "1_0", "Not a number of type DOUBLE"),
        (types.BOOLEAN, "maybe", "Expected value to be either true or false"),
    ],
)
def test_wrong_text_is_refused_in_kafkas_words(type_: int, text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        types.parse("some.key", type_, text)
    assert str(caught.value) == f"Invalid value {text} for configuration some.key: {reason}"


@pytest.mark.parametrize(
    ("rule", "value", "message"),
    [
        (">=1", 0, "Invalid value 0 for configuration k: Value must be at least 1"),
        ("0..1", 2.0, "Invalid value 2.0 for configuration k: Value must be no more than 1"),
        (
            "1..9|-1",
            10,
            "Invalid value 10 for configuration k: Value must be between 1 and 9 or equal to -1",
        ),
        ("one-of:a,b", "c", "Invalid value c for configuration k: String must be one of: a, b"),
        (
            "list-of:compact,delete",
            ("delete", "none"),
            "Invalid value none for configuration k: String must be one of: compact, delete",
        ),
        (
            "any-case:ES256,RS256",
            "x",
            "Invalid value x for configuration k:"
            " String must be one of (case insensitive): ES256, RS256",
        ),
        ("non-empty", "", "Invalid value  for configuration k: String must be non-empty"),
        (
            "replicas",
            ("abc",),
            "Invalid value [abc] for configuration k: k must be the literal '*' or a list of"
            " replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],"
            "...",
        ),
        (
            "offset-reset",
            "foo",
            "Invalid value foo for configuration k: Invalid value `foo` for configuration k. The"
            " value must be either 'earliest', 'latest' or of the format"
            " 'by_duration:<PnDTnHnMn.nS>'.",
        ),
    ],
)
def test_a_broken_rule_is_worded_as_kafka_does(
    rule: str, value: types.SettingValue, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        types.check("k", rule, value)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("-", "anything"),
        (">=1", 1),
        ("0..1", 1.0),
        ("1..9|-1", -1),
        ("one-of:a,b", "b"),
        ("list-of:compact,delete", ()),
        ("any-case:ES256,RS256", "es256"),
        ("replicas", ("*",)),
        ("replicas", ("0:1", "1:2")),
        ("offset-reset", "by_duration:P1DT2H"),
        (">=1", None),
    ],
)
def test_a_kept_rule_is_silent(rule: str, value: types.SettingValue) -> None:
    types.check("k", rule, value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (0.5, "0.5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e7, "1.0E7"),
        (123456789.0, "1.23456789E8"),
        (1e-5, "1.0E-5"),
        (0.001, "0.001"),
        (("a", "b"), "a,b"),
        (7, "7"),
        (None, None),
    ],
)
def test_values_are_written_as_java_writes_them(
    value: types.SettingValue, text: str | None
) -> None:
    assert types.format_value(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_survives_its_text(value: float) -> None:
    assert types.parse("k", types.DOUBLE, str(types.format_value(value))) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1H", 3_600_000),
        ("P1D", 86_400_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt1m", 60_000),
        ("1H", None),
        ("P", None),
        ("PT", None),
        ("P1H", None),
        ("PT1.5H", None),
        ("PTxS", None),
    ],
)
def test_durations_are_read(text: str, expected: int | None) -> None:
    assert types.duration_ms(text) == expected
