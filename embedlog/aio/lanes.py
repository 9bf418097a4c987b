"""Records that would have to wait, for metadata or for room in buffer.memory.

An event loop must not wait with them. The first record of a topic waits in a thread, inside the
synchronous `send`, with its limit and its errors; the next ones of that topic queue up behind it,
and go the ordinary way once it is through. Other topics are not held up.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from embedlog.aio.threads import attempt
from embedlog.errors import ClosedError, TimedOut

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from embedlog.aio.outcomes import Outcomes, Sent
    from embedlog.aio.shared_producer import Columns, SharedProducer

    Send = Callable[[], Sent]


_THREAD_NAME = "embedlog-aio-send"


class Lanes:
    """The lanes of one producer, by topic. Used in the event loop's thread."""

    def __init__(
        self,
        client: SharedProducer,
        outcomes: Outcomes,
        in_thread: Callable[[str, Send], asyncio.Future[Sent]],
        sent: Callable[[], None],
    ) -> None:
        """`sent` is called after records have got through."""
        self._client = client
        self._outcomes = outcomes
        self._in_thread = in_thread
        self._sent = sent
        self._lanes: dict[str, deque[_Waiting]] = {}
        self.topics = self._lanes.keys()
        """Of which a record waits, so that the next one waits too."""

    def add(
        self, send: Send, topic: str, partition: int | None, given: Columns, *, is_bulk: bool
    ) -> asyncio.Future[Any]:
        """Queue a call up; its future."""
        waiting = _Waiting(send, topic, partition, given, is_bulk, self._outcomes.new())
        lane = self._lanes.get(topic)
        if lane is None:
            self._lanes[topic] = deque([waiting])
            self._wait(waiting)
        else:
            lane.append(waiting)
        return waiting.future

    def _wait(self, first: _Waiting) -> None:
        """Let the first record of a lane wait in a thread."""
        sent = self._in_thread(_THREAD_NAME, first.send)
        sent.add_done_callback(lambda done: self._move(first, done))

    def _move(self, first: _Waiting, sent: asyncio.Future[Sent]) -> None:
        """The first of a lane is through, or never will be; so are those behind it that may."""
        lane = self._lanes[first.topic]
        lane.popleft()
        error = sent.exception() or _refusal(sent.result())
        self._take(first, sent.result)
        if isinstance(error, TimedOut | ClosedError) or (error and self._client.lacks(first.topic)):
            # What is behind it has waited for the same thing.
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


class _Waiting:
    """One call of `send` or `send_batch`."""

    __slots__ = ("future", "given", "is_bulk", "partition", "send", "topic")

    def __init__(  # noqa: PLR0917  its fields
        self,
        send: Send,
        topic: str,
        partition: int | None,
        given: Columns,
        is_bulk: bool,
        future: asyncio.Future[Any],
    ) -> None:
        self.send = send
        self.topic = topic
        self.partition = partition
        self.given = given
        self.is_bulk = is_bulk
        self.future = future


def _refusal(sent: Sent) -> Exception | None:
    """The error that the client gave a record at once, without sending it."""
    return sent.exception() if sent.done() else None
