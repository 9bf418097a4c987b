"""`AdminPart`: the base of the parts of the admin client."""

from __future__ import annotations

from _thread import get_ident

from embedlog.client import arguments
from embedlog.client.admin.results import handed_out
from embedlog.errors import ClosedError, EmbedlogError
from embedlog.runtime.outer_call import (
    INSIDE,
    PUT_OFF,
    closed_during,
    end_calls,
    is_gone,
    nested,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import RLock
    from collections.abc import Callable
    from typing import Any, Concatenate, ParamSpec, TypeVar

    from embedlog.client.admin.calls import AdminCalls
    from embedlog.client.metadata import Metadata
    from embedlog.client.settings import Settings
    from embedlog.transport import Transport

    A = TypeVar("A", bound="AdminPart")
    P = ParamSpec("P")
    T = TypeVar("T")


class AdminPart:
    """Base of the admin client's parts. Each has some of the calls; `Admin` inherits all parts.

    `Admin` also sets these attributes.
    """

    _settings: Settings
    _transport: Transport
    _calls: AdminCalls
    _metadata: Metadata
    _turn: RLock
    """Held by the thread whose call is running."""
    _is_closed: bool

    def _is_gone(self) -> bool:
        return self._is_closed or self._transport.is_closed


def in_turn(method: Callable[Concatenate[A, P], T]) -> Callable[Concatenate[A, P], T]:
    """Decorate a call, so that threads that share the client make one call at a time.

    Raises:
        ClosedError: the client is closed.
        NestedCall: the thread is inside another call.
        TypeError, ValueError: `timeout_ms` is not a number of milliseconds.
    """

    def call(self: A, /, *args: P.args, **kwargs: P.kwargs) -> T:
        me = get_ident()
        if me in INSIDE:
            raise nested(f"Admin.{method.__name__}")
        INSIDE[me] = f"Admin.{method.__name__}"
        try:
            with self._turn:
                if self._is_closed:
                    raise ClosedError("the admin client is closed")
                if kwargs.get("timeout_ms") is not None:
                    given: Any = kwargs
                    given["timeout_ms"] = arguments.timeout_ms(given["timeout_ms"], method.__name__)
                found = method(self, *args, **kwargs)
                if getattr(found, "failures", None) and self._is_gone():
                    # The items failed because their brokers had ended.
                    raise closed_during(f"Admin.{method.__name__}")
                return handed_out(found, method.__name__)
        except EmbedlogError as error:
            if is_gone(self, error):
                raise closed_during(f"Admin.{method.__name__}") from error
            raise
        finally:
            del INSIDE[me]
            if PUT_OFF:
                end_calls()

    # Does the same as functools.wraps, whose import would take longer than this whole module.
    call.__name__, call.__qualname__ = method.__name__, method.__qualname__
    call.__doc__ = method.__doc__
    call.__wrapped__ = method  # type: ignore[attr-defined]
    return call
