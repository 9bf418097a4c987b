"""Settings of a producer that depend on each other, and on where it runs."""

from __future__ import annotations

from embedlog.client.settings import INT_MAX
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.settings import Settings

_NETWORK_LINGER_MS = 5
_NETWORK_BATCH_SIZE = 16_384
_IN_PROCESS_BATCH_SIZE = 65_536
_DELIVERY_TIMEOUT_MS = 120_000
_IDEMPOTENT_IN_FLIGHT_MAX = 5


def complete(given: Settings, *, in_process: bool) -> Settings:
    """Fill in the defaults that Kafka derives.

    In process linger.ms is 0, as there is no round trip to share; batch.size is 65536, as what a
    batch costs beside its bytes is then a tenth of a record's price, not a third; and
    enable.idempotence is false, as no answer can be lost on the way: a call returns or raises.

    Raises:
        ConfigError: enable.idempotence was asked for and another setting contradicts it, or
            delivery.timeout.ms is shorter than linger.ms and request.timeout.ms together.
    """
    settings = dict(given)
    if settings["linger.ms"] is None:
        settings["linger.ms"] = 0 if in_process else _NETWORK_LINGER_MS
    if settings["batch.size"] is None:
        settings["batch.size"] = _IN_PROCESS_BATCH_SIZE if in_process else _NETWORK_BATCH_SIZE
    settings["enable.idempotence"] = _idempotence(given, in_process=in_process)
    if settings["acks"] is None:
        settings["acks"] = "all"
    if settings["retries"] is None:
        settings["retries"] = INT_MAX
    least = settings["linger.ms"] + settings["request.timeout.ms"]
    if settings["delivery.timeout.ms"] is None:
        settings["delivery.timeout.ms"] = max(_DELIVERY_TIMEOUT_MS, least)
    elif settings["delivery.timeout.ms"] < least:
        raise ConfigError(
            f"delivery.timeout.ms={settings['delivery.timeout.ms']}: must be at least linger.ms + "
            f"request.timeout.ms = {least}"
        )
    return settings


def _idempotence(given: Settings, *, in_process: bool) -> bool:
    asked = given["enable.idempotence"]
    if asked is False:
        return False
    conflicts = []
    if given["acks"] not in {None, "all", "-1"}:
        conflicts.append(f"acks={given['acks']} (must be all)")
    if given["retries"] == 0:
        conflicts.append("retries=0 (must be above 0)")
    in_flight_max = given["max.in.flight.requests.per.connection"]
    if in_flight_max > _IDEMPOTENT_IN_FLIGHT_MAX:
        conflicts.append(f"max.in.flight.requests.per.connection={in_flight_max} (at most 5)")
    if conflicts and asked:
        raise ConfigError(f"enable.idempotence=true contradicts {', '.join(conflicts)}")
    return not conflicts and (asked is True or not in_process)
