"""Names that a test writes, APIs and errors, and the nearest name for a misspelt one."""

from __future__ import annotations

from embedlog import errors
from embedlog.broker import dispatch
from embedlog.errors import ConfigError, KafkaError
from embedlog.testing.names import hint
from wire.api_keys import NAMES
from wire.error_codes import ERRORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    ErrorGiven = str | int | type[KafkaError] | KafkaError

API_KEYS: dict[str, int] = {NAMES[key]: key for key in dispatch.VERSIONS}
"""Name -> key of each served API."""

_CODES: dict[str, int] = {row[0]: code for code, row in ERRORS.items() if code != 0}


def api_key_of(name: object) -> int:
    """Return the key of an API.

    Raises:
        ConfigError: no API has this name, or brokers do not serve it.
    """
    key = API_KEYS.get(name) if isinstance(name, str) else None
    if key is None:
        is_known = name in NAMES.values()
        what = "brokers here do not serve this API" if is_known else "there is no such API"
        raise ConfigError(f"{name!r}: {what}; {hint(name, API_KEYS)}")
    return key


def error_of(given: ErrorGiven) -> KafkaError:
    """Return the error of a Kafka name, a code, a class or an instance.

    Raises:
        ConfigError: there is no such error.
    """
    if isinstance(given, KafkaError):
        return given
    if isinstance(given, type) and issubclass(given, KafkaError) and given is not KafkaError:
        return given()
    if isinstance(given, int) and not isinstance(given, bool) and given in ERRORS and given != 0:
        return errors.error_for(given)
    if isinstance(given, str):
        if given in _CODES:
            return errors.error_for(_CODES[given])
        raise ConfigError(f"error={given!r}: Kafka has no such error; {hint(given, _CODES)}")
    raise ConfigError(
        f"error={given!r}: expected Kafka's name of an error, its code, or its class in "
        "embedlog.errors"
    )
