"""Calls code that may raise anything for one record: a format's library, a user's function.

The record becomes a dead letter with the exception's text; other records are not affected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedlog.spark.pipeline.errors import DecodeError


def call(
    function: Callable[..., Any],
    *arguments: Any,
    what: str,
    passing: tuple[type[Exception], ...] = (DecodeError,),
) -> Any:
    """Return the result of `function`. Exceptions of the types `passing` are raised as they are.

    Raises:
        DecodeError: the function raised; the message is `what`, the exception's type and its text.
    """
    try:
        return function(*arguments)
    except passing:
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:500]
        raise DecodeError(f"{what}: {type(error).__name__}: {text}") from error
