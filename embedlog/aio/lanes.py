"""`Lanes`: records that must wait for metadata or for room in buffer.memory.

The event loop must not wait. The first such record of a topic waits in a thread, inside the
synchronous `send`, with the time limit and errors of that call. Later records of the topic queue up
behind it, in the topic's lane, and are sent as usual afterwards. Other topics are not delayed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from embedlog.aio.outcomes import Outcomes, Sent
from embedlog.aio.shared_producer import Columns, SharedProducer
from embedlog.aio.threads import attempt
from embedlog.errors import ClosedError, TimedOut

Send = Callable[[], Sent]

_THREAD_NAME = "embedlog-aio-send"


class Lanes:
    """The lanes of one producer, one for each topic. Used in the event loop's thread."""

    def __init__(
        self,
        client: SharedProducer,
        outcomes: Outcomes,
        in_thread: Callable[[str, Send], asyncio.Future[Sent]],
        sent: Callable[[], None],
    ) -> None:
        """`in_thread(name, call)` makes a call in a new thread. `sent` is called after a lane has
        sent records.
        """
        self._client = client
        self._outcomes = outcomes
        self._in_thread = in_thread
        self._sent = sent
        self._lanes: dict[str, deque[_Waiting]] = {}
        self.topics = self._lanes.keys()
        """The topics that have a lane: later records of these topics must wait as well."""

    def add(
        self, send: Send, topic: str, partition: int | None, given: Columns, *, is_bulk: bool
    ) -> asyncio.Future[Any]:
        waiting = _Waiting(send, topic, partition, given, is_bulk, self._outcomes.new())
        lane = self._lanes.get(topic)
        if lane is None:
            self._lanes[topic] = deque([waiting])
            self._wait(waiting)
        else:
            lane.append(waiting)
        return waiting.future

    def _wait(self, first: _Waiting) -> None:
        """In a thread, send the first record of a lane."""
        sent = self._in_thread(_THREAD_NAME, first.send)
        sent.add_done_callback(lambda done: self._move(first, done))

    def _move(self, first: _Waiting, sent: asyncio.Future[Sent]) -> None:
        """Continue with the records behind `first`, which was sent or has failed."""
        lane = self._lanes[first.topic]
        lane.popleft()
        error = sent.exception() or _refusal(sent.result())
        self._take(first, sent.result)
        if isinstance(error, TimedOut | ClosedError) or (error and self._client.lacks(first.topic)):
            # The records behind `first` need the same metadata or memory: fail them as well.
            while lane:
                self._outcomes.settle(lane.popleft().future, None, error)
        while lane and not self._would_wait(lane[0]):
            following = lane.popleft()
            self._take(following, following.send)
        if lane:
            self._wait(lane[0])
        else:
            del self._lanes[first.topic]
        self._sent()

    def _take(self, waiting: _Waiting, send: Send) -> None:
        sent, error = attempt(send)
        if sent is None:
            self._outcomes.settle(waiting.future, None, error)
        else:
            self._outcomes.watch(waiting.future, sent)

    def _would_wait(self, waiting: _Waiting) -> bool:
        return self._client.would_wait(
            waiting.topic, waiting.partition, waiting.given, is_bulk=waiting.is_bulk
        )


class _Waiting(NamedTuple):
    """A call of `send` or `send_batch` that waits in a lane."""

    send: Send
    topic: str
    partition: int | None
    given: Columns
    is_bulk: bool
    future: asyncio.Future[Any]


def _refusal(sent: Sent) -> Exception | None:
    """Return the error of a record that the client refused at once; None if it was not refused."""
    return sent.exception() if sent.done() else None
