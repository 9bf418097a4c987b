"""Types of settings: parse texts, format values, and check the rules for values.

The type numbers are the numbers in DescribeConfigs. The error messages are Kafka's for
INVALID_CONFIG, word for word, because programs show them and tests compare them.

A rule is one word of a definition table:

    -                   anything
    >=1                 at least 1
    0..1                from 0 to 1, both included
    1..9|-1             from 1 to 9, or -1
    one-of:a,b          one of these words
    any-case:a,b        one of these words in any case
    list-of:a,b         a list of these words
    non-empty           text that is not empty
    replicas            '*' or a list of partition:broker
    offset-reset        earliest, latest or by_duration:<ISO 8601 duration>
"""

from __future__ import annotations

from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    SettingValue = bool | int | float | str | tuple[str, ...] | None

BOOLEAN = 1
STRING = 2
INT = 3
SHORT = 4
LONG = 5
DOUBLE = 6
LIST = 7
CLASS = 8
PASSWORD = 9

TYPES = {
    "boolean": BOOLEAN,
    "string": STRING,
    "int": INT,
    "short": SHORT,
    "long": LONG,
    "double": DOUBLE,
    "list": LIST,
    "class": CLASS,
    "password": PASSWORD,
}
_INTEGER_BITS = {INT: 32, SHORT: 16, LONG: 64}
_INTEGER_NAMES = {INT: "INT", SHORT: "SHORT", LONG: "LONG"}


def parse(name: str, type_: int, text: str) -> SettingValue:
    """Return the value of a text for a setting of this type.

    Raises:
        ConfigError: the text is not of the type.
    """
    text = text.strip()
    if type_ in _INTEGER_BITS:
        return _parse_integer(name, type_, text)
    if type_ == LIST:
        # Repeated items are dropped, as in Kafka.
        return tuple(dict.fromkeys(item.strip() for item in text.split(","))) if text else ()
    if type_ == BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise invalid(name, text, "Expected value to be either true or false")
        return text.lower() == "true"
    if type_ == DOUBLE:
        return _parse_double(name, text)
    return text


def format_value(value: SettingValue) -> str | None:
    """Return the text of a value as Kafka writes it; None stays None."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _format_double(value)
    if isinstance(value, tuple):
        return ",".join(value)
    return None if value is None else str(value)


def check(name: str, rule: str, value: SettingValue) -> None:
    """Check a value against a rule.

    Raises:
        ConfigError: the value breaks the rule.
    """
    if rule == "-" or value is None:
        return
    kind, _, words = rule.partition(":")
    if kind in _WORD_RULES:
        _WORD_RULES[kind](name, words.split(","), value)
    elif kind == "non-empty":
        if not value:
            raise invalid(name, value, "String must be non-empty")
    elif kind == "replicas":
        _check_replicas(name, value)
    elif kind == "offset-reset":
        _check_offset_reset(name, value)
    else:
        _check_range(name, rule, value)


def invalid(name: str, value: SettingValue, reason: str) -> ConfigError:
    """Return the error for a wrong value, in Kafka's words."""
    shown = f"[{', '.join(value)}]" if isinstance(value, tuple) else format_value(value)
    return ConfigError(f"Invalid value {shown} for configuration {name}: {reason}")


def _parse_integer(name: str, type_: int, text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    # `int` alone would also take "1_000", which Kafka refuses.
    if digits.isdigit() and digits.isascii():
        value = int(text)
        limit = 1 << (_INTEGER_BITS[type_] - 1)
        if -limit <= value < limit:
            return value
    raise invalid(name, text, f"Not a number of type {_INTEGER_NAMES[type_]}")


def _parse_double(name: str, text: str) -> float:
    try:
        return float(text.replace("_", "?"))
    except ValueError:
        raise invalid(name, text, "Not a number of type DOUBLE") from None


def _format_double(value: float) -> str:
    """Return Java's text of a double: plain from 0.001 to 10,000,000, scientific outside."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    exponent = int(f"{value:e}".partition("e")[2])
    digits = repr(abs(value)).partition("e")[0].replace(".", "").strip("0") or "0"
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _check_range(name: str, rule: str, value: SettingValue) -> None:
    assert isinstance(value, int | float), (name, rule, value)
    bounds, _, exception = rule.partition("|")
    if bounds.startswith(">="):
        low, high = bounds[2:], ""
    else:
        low, high = bounds.split("..")
    if exception:
        if value != float(exception) and not float(low) <= value <= float(high):
            raise invalid(
                name, value, f"Value must be between {low} and {high} or equal to {exception}"
            )
    elif value < float(low):
        raise invalid(name, value, f"Value must be at least {low}")
    elif high and value > float(high):
        raise invalid(name, value, f"Value must be no more than {high}")


def _check_word(name: str, words: list[str], value: SettingValue) -> None:
    if value not in words:
        raise invalid(name, value, f"String must be one of: {', '.join(words)}")


def _check_word_in_any_case(name: str, words: list[str], value: SettingValue) -> None:
    assert isinstance(value, str), (name, value)
    if value.upper() not in words:
        raise invalid(name, value, f"String must be one of (case insensitive): {', '.join(words)}")


def _check_words(name: str, words: list[str], value: SettingValue) -> None:
    assert isinstance(value, tuple), (name, value)
    for item in value:
        _check_word(name, words, item)


_WORD_RULES = {
    "one-of": _check_word,
    "any-case": _check_word_in_any_case,
    "list-of": _check_words,
}


def _check_replicas(name: str, value: SettingValue) -> None:
    assert isinstance(value, tuple), (name, value)
    if value in ((), ("*",)):
        return
    for item in value:
        partition, colon, broker = item.partition(":")
        if not colon or not (partition.isdigit() and broker.isdigit()):
            raise invalid(
                name,
                value,
                f"{name} must be the literal '*' or a list of replicas in the following "
                "format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
            )


def _check_offset_reset(name: str, value: SettingValue) -> None:
    assert isinstance(value, str), (name, value)
    if value in ("earliest", "latest"):
        return
    prefix, _, duration = value.partition(":")
    if prefix != "by_duration" or duration_ms(duration) is None:
        raise invalid(
            name,
            value,
            f"Invalid value `{value}` for configuration {name}. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        )


def duration_ms(text: str) -> int | None:
    """Return the milliseconds of an ISO 8601 duration such as P1DT2H3M4.5S, or None."""
    unit_ms = {"D": 86_400_000, "H": 3_600_000, "M": 60_000, "S": 1000}
    upper = text.upper()
    if not upper.startswith("P") or len(upper) < 3 or upper.endswith("T"):
        return None
    days, _, times = upper[1:].partition("T")
    total = 0.0
    for part, units in ((days, "D"), (times, "HMS")):
        rest = part
        for unit in units:
            amount, found, after = rest.partition(unit)
            if not found:
                continue
            if not amount.replace(".", "", unit == "S").isdigit():
                return None
            total += float(amount) * unit_ms[unit]
            rest = after
        if rest:
            return None
    return int(total)
