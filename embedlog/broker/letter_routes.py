"""Requests of a share partition's leader to brokers, also to itself, for dead letters."""

from __future__ import annotations

from embedlog.broker.context import RequestContext
from embedlog.runtime.pending import Pending, completed
from wire.registry import stable_versions
from wire.schema import declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.broker.peers import Peers
    from embedlog.sharing.dead_letters import Ask
    from wire.schema import Request

_TIMEOUT_MS = 30_000


def letter_routes(
    node_id: int, peers: Peers | None, handle: Callable[[RequestContext, Any], Any]
) -> Ask:
    """Return a function that sends a request to a broker. `handle` is this broker's own door."""

    def ask(leader: int, request: Request[Any]) -> Pending[Any]:
        if peers is not None and leader != node_id:
            return peers.send(leader, request, timeout_ms=_TIMEOUT_MS)
        api_key = declaration(type(request)).api
        assert api_key is not None, request
        answer = handle(RequestContext(api_key, stable_versions(api_key)[1]), request)
        return answer if isinstance(answer, Pending) else completed(answer)

    return ask
