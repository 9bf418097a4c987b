"""What a rule does with a request. `options.action_of` makes an action from a test's arguments.

An action gets the request as `Fired`, and `proceed`, which passes it on to the next rule and at the
end to the broker.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker import dispatch
from embedlog.testing.faults.mapping import afterwards
from embedlog.testing.faults.refusals import lost, refuse, refuse_after
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.errors import KafkaError
    from embedlog.testing.faults.fired import Fired
    from embedlog.testing.faults.waiting import HeldRequest, Waiting
    from embedlog.testing.interception import Proceed

AFTER_THE_WORK: dict[int, frozenset[int] | None] = {
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: frozenset({ApiKey.PRODUCE}),
    ErrorCode.REQUEST_TIMED_OUT: frozenset(
        {
            ApiKey.PRODUCE,
            ApiKey.OFFSET_COMMIT,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.CREATE_TOPICS,
            ApiKey.DELETE_TOPICS,
            ApiKey.CREATE_PARTITIONS,
            ApiKey.DELETE_RECORDS,
            ApiKey.ELECT_LEADERS,
            ApiKey.ALTER_CONFIGS,
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            ApiKey.UPDATE_FEATURES,
            ApiKey.WRITE_TXN_MARKERS,
        }
    ),
}
"""Error -> APIs whose brokers send it when the work is done or goes on.

An append is in the log when its replicas do not follow in time, and a change of the metadata is
made when its answer comes too late. A client that repeats such a request meets its own work.
"""


class Action:
    """Base of the actions."""

    name = ""
    apis: frozenset[int] | None = None
    """The APIs that it can be used for; None for all."""
    is_late = False
    """True if only the answer shows whether there is something to act on: then the action itself
    asks the trigger."""

    def perform(self, fired: Fired, proceed: Proceed) -> Any:
        """Answer the request."""
        raise AssertionError(f"{type(self).__name__} has no way to act")

    def end(self, owner: object) -> None:
        """End what still waits because of a rule that is removed."""

    def __str__(self) -> str:
        return f"action={self.name!r}"


class Refuse(Action):
    """Answer with an error, before or after the work."""

    name = "error"

    def __init__(self, error: KafkaError, *, after_apply: bool | None) -> None:
        self._error = error
        self._after_apply = after_apply

    def perform(self, fired: Fired, proceed: Proceed) -> Any:
        call, error = fired.call, self._error
        is_after = self._after_apply
        if is_after is None:
            apis = AFTER_THE_WORK.get(error.code)
            is_after = apis is not None and call.context.api_key in apis
        if not is_after:
            fired.hit()
            return refuse(call, error, fired.items, proceed)

        def change(response: Any) -> Any:
            fired.hit()
            if response is None:
                return dispatch.error_response(call.request, call.context, error)
            return refuse_after(call, error, fired.items, response)

        return afterwards(proceed(call), change)

    def __str__(self) -> str:
        after = ", after_apply=True" if self._after_apply else ""
        return f"error={errors.error_name(self._error.code)!r}{after}"


class Cut(Action):
    """Break the connection, before the work or in place of the answer."""

    name = "cut"

    def __init__(self, *, after_apply: bool) -> None:
        self._after_apply = after_apply

    def perform(self, fired: Fired, proceed: Proceed) -> Any:
        if not self._after_apply:
            fired.hit()
            return lost(fired.call)

        def cut(_response: Any) -> Any:
            fired.hit()
            return lost(fired.call)

        return afterwards(proceed(fired.call), cut)

    def __str__(self) -> str:
        return f"action={'cut-after-apply' if self._after_apply else 'cut'!r}"


class Delay(Action):
    """Let the request wait before the work, or its answer after the work."""

    name = "delay"

    def __init__(self, waiting: Waiting, seconds: float, *, after_apply: bool) -> None:
        self._waiting = waiting
        self._delay_ms = round(seconds * 1000)
        self._after_apply = after_apply

    def perform(self, fired: Fired, proceed: Proceed) -> Any:
        def begin(held: HeldRequest) -> None:
            fired.hit()
            self._waiting.release_in(held, self._delay_ms)

        return self._waiting.keep(fired, proceed, begin, after_apply=self._after_apply)

    def __str__(self) -> str:
        after = ", after_apply=True" if self._after_apply else ""
        return f"action='delay', seconds={self._delay_ms / 1000:g}{after}"


class Hang(Action):
    """Answer nothing until the rule ends; then break the connection."""

    name = "hang"

    def __init__(self, waiting: Waiting, *, after_apply: bool) -> None:
        self._waiting = waiting
        self._after_apply = after_apply

    def perform(self, fired: Fired, proceed: Proceed) -> Any:
        return self._waiting.keep(
            fired, proceed, lambda _held: fired.hit(), after_apply=self._after_apply
        )

    def end(self, owner: object) -> None:
        for held in self._waiting.held_by(owner):
            held.cut()

    def __str__(self) -> str:
        after = ", after_apply=True" if self._after_apply else ""
        return f"action='hang'{after}"


class Keep(Action):
    """Hold requests, or their answers, until the test releases them: see `Hold`."""

    name = "hold"

    def __init__(self, waiting: Waiting, *, after_apply: bool, drops_left: bool) -> None:
        """`drops_left`: a request of a client that has left is never done."""
        self._waiting = waiting
        self._after_apply = after_apply
        self._drops_left = drops_left

    def perform(self, fired: Fired, proceed: Proceed) -> Any:
        return self._waiting.keep(
            fired,
            proceed,
            lambda _held: fired.hit(),
            after_apply=self._after_apply,
            drops_left=self._drops_left,
        )

    def end(self, owner: object) -> None:
        for held in self._waiting.held_by(owner):
            held.release()

    def __str__(self) -> str:
        return "hold" + (", after_apply=True" if self._after_apply else "")
