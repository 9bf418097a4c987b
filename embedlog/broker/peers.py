"""The calls from one broker to the other brokers and to the controller; for the type checker.

The only broker of a cluster has no peers. No method waits: an answer is a `Pending`, which fails
with `Network` or `RequestTimedOut` if no answer comes.
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


class Isolation(Protocol):
    """What a test has taken away from the only broker of a cluster."""

    is_hidden: bool
    """True if metadata for clients leaves the broker out."""

    def reaches_controller(self) -> bool:
        """Return whether the broker may ask its controller now."""


class Peers(Membership, Protocol):
    """The other brokers and the controller, as one broker sees them; see `embedlog.cluster`."""

    def ask_controller(self, call: Callable[[Controller], T]) -> Pending[T]:
        """Run `call` on the controller; the pending fails with the exception of `call`."""

    def address(self, node_id: int, context: RequestContext) -> tuple[str, int] | None:
        """Return a broker's address for clients of the request's listener; None if it has none."""

    def has_just_left(self, node_id: int) -> bool:
        """Return whether the broker was stopped or killed only a moment ago."""

    def let_follow(self, topic_partition: TopicPartition, replicas: Sequence[int]) -> None:
        """Let the other brokers host their replicas of a used partition at once."""

    def give_up(self) -> None:
        """End this broker at once, because its first log directory has failed."""

    def reaches_controller(self) -> bool:
        """Return whether a call of this broker would reach the controller now."""
