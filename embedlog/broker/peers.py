"""The way from one broker to the others and to the controller; for the type checker.

The only broker of a cluster has no peers. No method waits: answers come as `Pending`s, and fail
with `Network` or `RequestTimedOut` if nobody answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from embedlog.replication.membership import Membership

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.broker.context import RequestContext
    from embedlog.common import TopicPartition
    from embedlog.controller.controller import Controller
    from embedlog.runtime.pending import Pending

    T = TypeVar("T")


class Peers(Membership, Protocol):
    """The cluster around one broker. `embedlog.cluster`, the room above, implements it."""

    def ask_controller(self, call: Callable[[Controller], T]) -> Pending[T]:
        """Run `call` on the controller; the pending fails with the exception of `call`."""

    def address(self, node_id: int, context: RequestContext) -> tuple[str, int] | None:
        """Return the address of a broker for clients of the request's listener, or None."""

    def has_just_left(self, node_id: int) -> bool:
        """Was the broker stopped or killed only a moment ago?"""

    def let_follow(self, topic_partition: TopicPartition, replicas: Sequence[int]) -> None:
        """Let the other replicas of a used partition be hosted now."""

    def give_up(self) -> None:
        """End this broker at once, because its first log directory has failed."""

    def reaches_controller(self) -> bool:
        """Would the controller hear of a call now?"""
