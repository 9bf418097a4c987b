"""Conditions of transactions, and of a test's own function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from embedlog.common import TopicPartition
from embedlog.errors import EmbedlogError
from embedlog.testing.inspection.brokers import MOVING, Brokers
from embedlog.testing.inspection.transactions import (
    TransactionValue,
    read_transaction,
    read_transactions,
)
from embedlog.testing.interception import Call, Proceed
from embedlog.testing.names import nearest
from embedlog.testing.stage_list import StageList
from embedlog.testing.waits.condition import Condition
from embedlog.testing.waits.watched_partitions import WatchedPartitions

T = TypeVar("T")
_SHOWN_MAX = 10


class TransactionState(Condition[TransactionValue]):
    """The state of a transactional id."""

    def __init__(self, brokers: Brokers, transactional_id: str, state: str) -> None:
        self._brokers = brokers
        self._state = state
        self._value = TransactionValue(transactional_id)
        self.wanted = f"transactional id {transactional_id!r} in state {state}"

    def look(self) -> TransactionValue | None:
        name = self._value.transactional_id
        try:
            self._value = read_transaction(self._brokers, name, waits=False)
        except MOVING:
            return None
        return self._value if self._value.state == self._state else None

    def seen(self) -> str:
        return str(self._value)

    def near(self) -> Sequence[str]:
        if self._value.exists:
            return ()
        try:
            names = {each.transactional_id: each.state for each in read_transactions(self._brokers)}
        except EmbedlogError:
            return ()
        if not names:
            return ["there are no transactional ids at all"]
        like = nearest(self._value.transactional_id, names)
        if like is not None:
            return [f"there is a transactional id {like!r} in state {names[like]}"]
        return [f"there are the transactional ids {', '.join(list(names)[:_SHOWN_MAX])}"]


class Function(Condition[T]):
    """A function of the test that returns a true value.

    It is called again after each change of coordinators, metadata and partitions, and after each
    request of a client.
    """

    heeds_own = True

    def __init__(
        self,
        brokers: Brokers,
        stages: StageList,
        function: Callable[[], T],
        describe: str | None,
        wake: Callable[[], object],
    ) -> None:
        self._brokers = brokers
        self._stages = stages
        self.function = function
        self._wake = wake
        self._watched = WatchedPartitions(brokers, wake)
        self._last: object = None
        name = getattr(function, "__name__", repr(function))
        self.wanted = describe or f"a true value of {name}"

    def begin(self) -> None:
        self._stages.add(self._stage)

    def look(self) -> T | None:
        # The newest topics are watched before the function looks at them.
        self._watched.watch(
            TopicPartition(topic.name, each.partition)
            for topic in self._brokers.image.topics_by_name.values()
            for each in topic.partitions
        )
        found = self.function()
        self._last = found
        return found or None

    def seen(self) -> str:
        return f"{self._last!r}"

    def end(self) -> None:
        self._stages.remove(self._stage)
        self._watched.close()

    def _stage(self, call: Call, proceed: Proceed) -> Any:
        answer = proceed(call)
        self._wake()
        return answer
