"""The resource BROKER_LOGGER: log levels that a client sets, kept until the broker closes.

There is only the root logger. The levels have no effect: the application configures its logging.
"""

from __future__ import annotations

from collections.abc import Sequence

from embedlog import errors
from embedlog.config import BrokerConfig
from embedlog.controller import config_changes

ROOT = "root"
LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")

_NOT_FOR_LOGGERS = {config_changes.APPEND: "APPEND", config_changes.SUBTRACT: "SUBTRACT"}


def alter(
    config: BrokerConfig,
    resource_name: str,
    changes: Sequence[config_changes.Change],
    *,
    validate_only: bool,
) -> None:
    """Set log levels. Raises InvalidRequest or InvalidConfig with Kafka's messages."""
    config_changes.refuse_duplicates(name for _, name, _ in changes)
    config_changes.refuse_nulls(changes)
    _check_node(config, resource_name)
    for operation, name, level in changes:
        _check(config, operation, name, level)
    if not validate_only:
        config.logger_levels.update((name, level) for _, name, level in changes if level)


def _check_node(config: BrokerConfig, resource_name: str) -> None:
    digits = resource_name.removeprefix("-")
    if not (digits.isdigit() and digits.isascii()):
        raise errors.InvalidRequest(f"Node id must be an integer, but it is: {resource_name}")
    if int(resource_name) != config.node_id:
        raise errors.InvalidRequest(
            f"Unexpected node id. Expected {config.node_id}, but received {resource_name}",
        )


def _check(config: BrokerConfig, operation: int, name: str, level: str | None) -> None:
    if operation not in (config_changes.SET, config_changes.DELETE):
        known = _NOT_FOR_LOGGERS.get(operation)
        shown = f"{known} operation" if known else f"Unknown operation type {operation}"
        raise errors.InvalidRequest(f"{shown} is not allowed for the BROKER_LOGGER resource")
    if name not in config.logger_levels:
        raise errors.InvalidConfig(f"Logger {name} does not exist!")
    if operation == config_changes.DELETE:
        # The root logger is the only logger, and its level cannot be removed.
        raise errors.InvalidRequest(f"Removing the log level of the {name} logger is not allowed")
    if level not in LEVELS:
        raise errors.InvalidConfig(
            f"Cannot set the log level of {name} to {level} as it is not a supported log level."
            f" Valid log levels are {', '.join(LEVELS)}",
        )
