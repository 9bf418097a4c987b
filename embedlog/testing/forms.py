"""`with_kafka`: a cluster for one test, as a decorator, with or without pytest."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from embedlog.errors import ConfigError
from embedlog.testing.kafka import Kafka
from embedlog.testing.shape import Shape

F = TypeVar("F", bound=Callable[..., Any])


def with_kafka(argument: str = "kafka", **shape: Any) -> Callable[[F], F]:
    """Give each call of a function a fresh cluster, as the keyword argument `argument`.

    The other arguments describe the cluster: see `Shape`. It works for functions, methods and
    coroutine functions, and hides the argument from pytest, which would look for a fixture.

    >>> @with_kafka(topics={"orders": 2})
    ... def count(kafka):
    ...     return len(kafka.cluster.topics)
    >>> count()
    1

    Raises:
        ConfigError: the shape is wrong, or the function has no such argument.
    """
    if not isinstance(argument, str):
        raise ConfigError(f"write @with_kafka(), with brackets, above {argument!r}")
    wanted = Shape.of(**shape)

    def decorate(function: F) -> F:
        made: Any
        if inspect.iscoroutinefunction(function):

            async def made(*arguments: Any, **named: Any) -> Any:
                with Kafka(wanted) as kafka:
                    return await function(*arguments, **{argument: kafka}, **named)

        else:

            def made(*arguments: Any, **named: Any) -> Any:
                with Kafka(wanted) as kafka:
                    return function(*arguments, **{argument: kafka}, **named)

        return without_argument(function, made, argument)

    return decorate


def without_argument(function: F, made: Any, argument: str) -> F:
    """Return `made` with the name and the signature of `function`, but without one argument.

    Raises:
        ConfigError: the function has no such argument.
    """
    signature = inspect.signature(function)
    known = signature.parameters
    if argument not in known:
        raise ConfigError(
            f"{function.__qualname__}{signature} has no argument {argument!r} for the cluster"
        )
    functools.update_wrapper(made, function)
    left = [each for name, each in known.items() if name != argument]
    made.__signature__ = signature.replace(parameters=left)
    return made  # type: ignore[no-any-return]
