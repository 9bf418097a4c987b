"""Conditions of requests that clients send.

A stage sees the requests only while a test waits. Requests of brokers to each other do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedlog.broker.context import RequestContext
from embedlog.testing.interception import Call, Proceed
from embedlog.testing.seen_request import SeenRequest
from embedlog.testing.stage_list import StageList
from embedlog.testing.waits.condition import Condition
from wire.api_keys import NAMES, ApiKey

_SHOWN_MAX = 8
_CONSUMER = -1


class Requests(Condition[list[SeenRequest]]):
    """A number of requests of one API, counted from the start of the wait."""

    def __init__(
        self,
        stages: StageList,
        api_key: int,
        *,
        client_id: str | None,
        node_id: int | None,
        times: int,
        where: Callable[[Any], object] | None,
        wake: Callable[[], object],
    ) -> None:
        self._stages = stages
        self._api_key = api_key
        self._client_id = client_id
        self._node_id = node_id
        self._times = times
        self._where = where
        self._wake = wake
        self._found: list[SeenRequest] = []
        self._others: dict[str, int] = {}
        self._error: BaseException | None = None
        of = f" of client {client_id!r}" if client_id is not None else ""
        at = f" at broker {node_id}" if node_id is not None else ""
        that = " that the function accepts" if where is not None else ""
        self.wanted = f"{times} requests {NAMES[api_key]}{of}{at}{that}"

    def begin(self) -> None:
        self._stages.add(self._stage)

    def end(self) -> None:
        self._stages.remove(self._stage)

    def look(self) -> list[SeenRequest] | None:
        if self._error is not None:
            raise self._error
        return self._found[: self._times] if len(self._found) >= self._times else None

    def seen(self) -> str:
        return f"{len(self._found)} of them"

    def near(self) -> list[str]:
        if not self._others:
            return ["no other request came"]
        most = sorted(self._others.items(), key=lambda each: -each[1])[:_SHOWN_MAX]
        return ["other requests: " + ", ".join(f"{text} ({count})" for text, count in most)]

    def _stage(self, call: Call, proceed: Proceed) -> Any:
        if not is_internal(call.context, call.request):
            self._note(call)
        return proceed(call)

    def _note(self, call: Call) -> None:
        context = call.context
        found = SeenRequest(
            NAMES[context.api_key], context.api_version, context.client_id, call.broker.node_id
        )
        if self._matches(call):
            self._found.append(found)
            self._wake()
        elif context.api_key == self._api_key or self._client_id in (None, context.client_id):
            key = f"{found.api} of {found.client_id!r}"
            self._others[key] = self._others.get(key, 0) + 1

    def _matches(self, call: Call) -> bool:
        context = call.context
        if context.api_key != self._api_key:
            return False
        if self._client_id is not None and context.client_id != self._client_id:
            return False
        if self._node_id not in (None, call.broker.node_id):
            return False
        if self._where is None:
            return True
        try:
            return bool(self._where(call.request))
        except Exception as error:  # the test's own function: its error ends the wait
            self._error = error
            self._wake()
            return False


def is_internal(context: RequestContext, request: Any) -> bool:
    """Return whether a broker sent the request: a follower, or a transaction coordinator."""
    if context.api_key == ApiKey.FETCH:
        state = request.replica_state
        in_state: int = _CONSUMER if state is None else state.replica_id
        return request.replica_id >= 0 or in_state >= 0
    return context.api_key == ApiKey.WRITE_TXN_MARKERS and context.connection is None
