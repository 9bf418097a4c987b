"""Packages of an extra: a missing one is an error that names the extra."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from embedlog.errors import EmbedlogError


class MissingExtra(EmbedlogError, ImportError):
    """A package is missing that an extra of embedlog installs. The message names the extra."""


def load(module: str, extra: str, purpose: str) -> Any:
    """Import and return a module.

    Raises:
        MissingExtra: the package is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"{purpose} needs the package {module.partition('.')[0]!r}: "
            f"pip install 'embedlog[{extra}]' ({error})"
        ) from None
