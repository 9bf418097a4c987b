"""What a broker knows of the others: the way to them, and to the controller; for the type checker.

A broker that is alone has none of this. Nothing here waits: answers come as `Pending`s, and fail
with `Network` or `RequestTimedOut` where nobody answers.
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
    """The cluster around one broker. The room of the cluster above this one implements it."""

    def ask_controller(self, call: Callable[[Controller], T]) -> Pending[T]:
        """Run `call` where the controller is; the pending fails with what it raises."""

    def address(self, node_id: int, context: RequestContext) -> tuple[str, int] | None:
        """Where clients of the request's listener reach a broker; None when they cannot."""

    def has_just_left(self, node_id: int) -> bool:
        """Was a broker stopped or killed only a moment ago?"""

    def let_follow(self, topic_partition: TopicPartition, replicas: Sequence[int]) -> None:
        """A partition is in use: let the others that have a replica host it now."""

    def give_up(self) -> None:
        """End this broker at once, as its first log directory has failed."""

    def reaches_controller(self) -> bool:
        """Would the controller hear of a call now?"""
