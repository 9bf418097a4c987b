"""`LoneLink`: the way of one transport to the only broker, which a test may stop and pause."""

from __future__ import annotations

from embedlog import errors
from embedlog.runtime.pending import Pending
from embedlog.transport import ANY_NODE, RECONNECT_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.broker.context import RequestContext
    from embedlog.cluster.lone_member import LoneMember
    from wire.schema import R, Request


class LoneLink:
    """See `embedlog.transport.Link`. Many threads may use it.

    A stopped broker breaks the connection, as a dead process does.
    """

    loses_answers = True

    def __init__(self, member: LoneMember) -> None:
        self._member = member
        self.failure_count = 0

    def handle(self, context: RequestContext, request: Request[R]) -> R | Pending[R]:
        answer = self._member.door.handle(context, request)
        if type(answer) is Pending:
            answer.add_callback(self._note_failure)
        return answer

    def _note_failure(self, answer: Pending[Any]) -> None:
        if isinstance(answer.error(), errors.Network):
            self.failure_count += 1

    def disk_error(self, topic: str, partition: int) -> Exception | None:
        """See `Broker.disk_error`; None while the broker does not run."""
        running = self._member.running
        return None if running is None else running.core.disk_error(topic, partition)

    def is_ready(self, node_id: int) -> bool:
        """Return whether requests reach the broker. A transport does not choose a paused one."""
        door = self._member.door
        return door.is_open and not (node_id == ANY_NODE and door.is_paused)

    def prepare(self, node_id: int) -> int | None:
        """Connect: return None if the broker runs, else milliseconds until the next try."""
        if self.is_ready(node_id):
            return None
        self.failure_count += 1
        return RECONNECT_MS
