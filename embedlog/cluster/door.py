"""`Door`: the entry to a broker that can be stopped, killed and paused.

    open      requests go through, answers come back
    paused    requests and answers wait, as for a process that received SIGSTOP
    slow      a request that writes waits for the disk
    closed    waiting and new requests fail with `Network`: the connection broke

Requests that only the controller can serve also wait while the controller cannot be reached.
"""

from __future__ import annotations

from _thread import get_ident

from embedlog import errors
from embedlog.cluster.faults.slow_disk import WRITING, SlowDisk
from embedlog.runtime.pending import Pending
from wire.api_keys import ApiKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime import Runtime
    from wire.schema import R, Request

FORWARDED = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.DESCRIBE_QUORUM,
    }
)
"""APIs that a broker forwards to the controller."""


class Door:
    """Entry to one broker, over its restarts. Every method may be called from any thread."""

    def __init__(
        self, node_id: int, reaches_controller: Callable[[], bool], runtime: Runtime
    ) -> None:
        self._node_id = node_id
        self.slow_disk = SlowDisk(runtime)
        self._reaches_controller = reaches_controller
        self._core: Broker | None = None
        self.is_paused = False
        self._open: dict[Pending[Any], None] = {}
        """Answers that clients wait for."""
        self._held: list[Callable[[], None]] = []
        """Actions to run when the broker resumes or can reach the controller."""
        self._inside: list[int] = []
        """The threads that are in the broker with a request, once for each request."""

    @property
    def is_open(self) -> bool:
        """True from `open` to `close`, also during a pause."""
        return self._core is not None

    def open(self, core: Broker) -> None:
        """Let requests through to the started broker."""
        self._core = core

    def refuse(self) -> None:
        """Let no new request in; answers still come back until `close`."""
        self._core = None

    @property
    def is_busy(self) -> bool:
        """True if another thread is in the broker with a request."""
        me = get_ident()
        return any(each != me for each in self._inside.copy())

    def close(self) -> None:
        """Break all connections: the broker is gone."""
        self._core = None
        self.is_paused = False
        self._held.clear()
        self.slow_disk.forget()
        for answer in list(self._open):
            if not answer.done():
                answer.fail(errors.Network(f"broker {self._node_id} is gone"))
            self._open.pop(answer, None)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        self.try_again()

    def try_again(self) -> None:
        """Run the waiting actions, for example because the controller can be reached again."""
        held, self._held = self._held, []
        for action in held:
            action()

    def handle(self, context: RequestContext, request: Request[R]) -> R | Pending[R]:
        """See `Broker.handle`. Raises nothing; the pending may fail with `Network`."""
        if self._core is None:
            refused: Pending[R] = Pending()
            refused.fail(errors.Network(f"broker {self._node_id} does not run"))
            return refused
        is_forwarded = context.api_key in FORWARDED
        if self.is_paused or (is_forwarded and not self._reaches_controller()):
            return self._hold(lambda: self.handle(context, request), self._held.append)
        if self.slow_disk.is_slow and context.api_key in WRITING:
            return self._hold(lambda: self._handled(context, request), self.slow_disk.write)
        return self._handled(context, request)

    def _handled(self, context: RequestContext, request: Request[R]) -> R | Pending[R]:
        me = get_ident()
        self._inside.append(me)
        try:
            core = self._core
            if core is None or self.is_paused:
                return self.handle(context, request)
            answer = core.handle(context, request)
        finally:
            self._inside.remove(me)
        if type(answer) is Pending:
            # Only answers in process are tracked: a network client sees its connection break.
            return self._watched(answer, is_tracked=context.connection is None)
        return answer

    def _hold(
        self,
        handle: Callable[[], R | Pending[R]],
        keep: Callable[[Callable[[], None]], None],
    ) -> Pending[R]:
        """Return a pending of the answer. `keep` gets the action that calls `handle` later."""
        outer: Pending[R] = Pending()
        self._open[outer] = None

        def go_on() -> None:
            if not outer.done():
                self._open.pop(outer, None)
                outer.follow(handle())

        keep(go_on)
        return outer

    def _watched(self, answer: Pending[R], *, is_tracked: bool) -> Pending[R]:
        if answer.done() and not self.is_paused:
            return answer
        outer: Pending[R] = Pending()
        if is_tracked:
            self._open[outer] = None

        def answered(done: Pending[R]) -> None:
            if self.is_paused:
                self._held.append(lambda: answered(done))
                return
            self._open.pop(outer, None)
            if not outer.done():
                outer.follow(done)

        answer.add_callback(answered)
        return outer
