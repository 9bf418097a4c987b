"""The rules between a producer's settings, and their defaults in process and over a network."""

from __future__ import annotations

from embedlog.client.settings import INT_MAX, warn_idle
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.interceptors import InterceptorChain
    from embedlog.client.settings import Settings

_CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
_REQUEST_OVERHEAD = 1024
"""Bytes for the parts of a request around a batch."""
_NETWORK_LINGER_MS = 5
_NETWORK_BATCH_SIZE = 16_384
_IN_PROCESS_BATCH_SIZE = 65_536
_DELIVERY_TIMEOUT_MS = 120_000
_TRANSACTION_TIMEOUT_MS = 60_000
_IDEMPOTENT_IN_FLIGHT_MAX = 5


class SenderSettings:
    """The settings that a sender reads."""

    def __init__(self, settings: Settings, *, in_process: bool) -> None:
        codec: str = settings["compression.type"]
        self.codec = _CODECS[codec]
        self.level: int | None = settings.get(f"compression.{codec}.level")
        self.transactional_id: str | None = settings["transactional.id"]
        self.acks = _ACKS[settings["acks"]]
        self.linger_ms: int = settings["linger.ms"]
        if in_process:
            # At least 1: a pass for a full batch must not send a batch that has just begun.
            self.linger_ms = max(self.linger_ms, 1)
        self.in_flight_max: int = settings["max.in.flight.requests.per.connection"]
        self.request_timeout_ms: int = settings["request.timeout.ms"]
        self.request_size_max: int = settings["max.request.size"]
        self.part_size_max = max(self.request_size_max - _REQUEST_OVERHEAD, 1)
        """The largest part of a batch that is split because it is too large for a request."""


def complete(given: Settings, *, in_process: bool, loses_answers: bool = True) -> Settings:
    """Fill in the defaults that depend on other settings or on the transport.

    In process linger.ms is 0, because there is no round trip to share, and batch.size is 65536: the
    fixed cost of a batch is then a tenth of a record's price, not a third. If no answer can be lost
    (see `Transport`) enable.idempotence is false.

    Raises:
        ConfigError: enable.idempotence or transactional.id was set and another setting contradicts
            it, or delivery.timeout.ms is shorter than linger.ms and request.timeout.ms together, or
            compression.gzip.level is 0, which would compress nothing.
    """
    settings = dict(given)
    if settings["linger.ms"] is None:
        settings["linger.ms"] = 0 if in_process else _NETWORK_LINGER_MS
    if settings["batch.size"] is None:
        settings["batch.size"] = _IN_PROCESS_BATCH_SIZE if in_process else _NETWORK_BATCH_SIZE
    settings["enable.idempotence"] = _idempotence(given, loses_answers=loses_answers)
    settings["transaction.timeout.ms"] = _transaction_timeout(given)
    if settings["acks"] is None:
        settings["acks"] = "all"
    if settings["retries"] is None:
        settings["retries"] = INT_MAX
    codec = settings["compression.type"]
    levels = [f"compression.{each}.level" for each in ("gzip", "lz4", "zstd") if each != codec]
    warn_idle(given, levels, f"compression.type is {codec!r}")
    if settings["compression.gzip.level"] == 0:
        raise ConfigError("compression.gzip.level=0: must be 1 to 9, or -1 for gzip's own choice")
    least = min(settings["linger.ms"] + settings["request.timeout.ms"], INT_MAX)
    if settings["delivery.timeout.ms"] is None:
        settings["delivery.timeout.ms"] = max(_DELIVERY_TIMEOUT_MS, least)
    elif settings["delivery.timeout.ms"] < least:
        raise ConfigError(
            f"delivery.timeout.ms={settings['delivery.timeout.ms']}: must be at least linger.ms + "
            f"request.timeout.ms = {least}"
        )
    return settings


def _idempotence(given: Settings, *, loses_answers: bool) -> bool:
    asked = given["enable.idempotence"]
    transactional_id = given["transactional.id"]
    if asked is False:
        if transactional_id is not None:
            raise ConfigError(
                f"transactional.id={transactional_id!r} contradicts enable.idempotence=false: "
                f"transactions count each record once"
            )
        return False
    conflicts = []
    if given["acks"] not in {None, "all", "-1"}:
        conflicts.append(f"acks={given['acks']} (must be all)")
    if given["retries"] == 0:
        conflicts.append("retries=0 (must be above 0)")
    in_flight_max = given["max.in.flight.requests.per.connection"]
    if in_flight_max > _IDEMPOTENT_IN_FLIGHT_MAX:
        conflicts.append(f"max.in.flight.requests.per.connection={in_flight_max} (at most 5)")
    is_asked = bool(asked) or transactional_id is not None
    if conflicts and is_asked:
        why = "enable.idempotence=true" if asked else f"transactional.id={transactional_id!r}"
        raise ConfigError(f"{why} contradicts {', '.join(conflicts)}")
    return not conflicts and (is_asked or loses_answers)


def _transaction_timeout(given: Settings) -> int:
    """Return the coordinator's time-out for transactions; INT_MAX with two-phase commit."""
    timeout_ms: int | None = given["transaction.timeout.ms"]
    two_phases = given["transaction.two.phase.commit.enable"]
    if given["transactional.id"] is None:
        of_transactions = ("transaction.timeout.ms", "transaction.two.phase.commit.enable")
        warn_idle(given, of_transactions, "there is no transactional.id")
    elif not given["transactional.id"]:
        raise ConfigError("transactional.id='': must not be empty")
    elif two_phases and timeout_ms is not None:
        raise ConfigError(
            f"transaction.timeout.ms={timeout_ms} contradicts transaction.two.phase.commit.enable="
            f"true: such transactions do not time out"
        )
    if timeout_ms is None:
        timeout_ms = INT_MAX if two_phases else _TRANSACTION_TIMEOUT_MS
    return timeout_ms


def interceptors(settings: Settings) -> InterceptorChain | None:
    """Make the interceptors that the settings name; import their module only then."""
    if not settings["interceptor.classes"]:
        return None
    from embedlog.client.interceptors import InterceptorChain

    return InterceptorChain(settings["interceptor.classes"], settings)
