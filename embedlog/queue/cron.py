"""Times by cron expressions, by the package cronsim."""

from __future__ import annotations

from datetime import UTC, datetime

from embedlog.errors import ConfigError


def next_ms(expression: str, after_ms: int) -> int:
    """Return the first time after `after_ms`, both in ms since 1970. Expressions are in UTC.

    >>> next_ms("*/5 * * * *", 0)
    300000

    Raises:
        ConfigError: the expression is wrong, no time fits it, or the package is missing.
    """
    try:
        from cronsim import CronSim, CronSimError
    except ImportError:
        raise ConfigError(
            f"put(cron={expression!r}): cronsim is missing: pip install 'embedlog[cron]'"
        ) from None
    after = datetime.fromtimestamp(after_ms / 1000, UTC)
    try:
        found = next(CronSim(expression, after), None)
    except CronSimError as error:
        raise ConfigError(f"put(cron={expression!r}): {error}") from None
    if found is None:
        raise ConfigError(f"put(cron={expression!r}): no time fits it")
    return int(found.timestamp() * 1000)
