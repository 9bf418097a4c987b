"""Calling code that may raise anything over one record: a format's library, a user's function.

The record becomes a dead letter that says what was raised; the other ones go on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedlog.spark.pipeline.errors import DecodeError


def call(function: Callable[..., Any], *arguments: Any, what: str) -> Any:
    """What `function` returns.

    Raises:
        DecodeError: it raised; names the kind of the error, its text and `what` was called.
    """
    try:
        return function(*arguments)
    except DecodeError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:500]
        raise DecodeError(f"{what}: {type(error).__name__}: {text}") from error
