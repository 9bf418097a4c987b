"""A program for `test_signals`: a signal interrupts polls at every `STEP`th line.

    python interrupted_consumer.py wakeup|interrupt in-process|tcp alone|group STEP

A signal handler runs between two lines of the main thread, which may hold locks at that moment. A
trace function runs in the same way, and the test can choose its line. A deadlock ends the program
with a traceback.

A handler may call `wakeup` at any line. Ctrl-C may come at any line that moves bytes. At other
lines the test would be unfair: the interpreter never handles a signal between taking a lock and
entering its `with`, but a trace function would raise there.
"""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import embedlog

_STUCK_AFTER_S = 30
_LINES_MAX = 2_000
_OURS = ("/embedlog/", "/wire/")
NETWORK = ("/embedlog/client/network/", "/wire/")


class AtLine:
    """Calls `action` before the `number`th line of our code in one of the `folders`."""

    def __init__(
        self, number: int, action: Callable[[], None], folders: tuple[str, ...] = _OURS
    ) -> None:
        self._left = number
        self._action = action
        self._folders = folders

    def __enter__(self) -> AtLine:
        sys.settrace(self._called)
        return self

    def __exit__(self, *_exception: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        return (
            self._line if any(each in frame.f_code.co_filename for each in self._folders) else None
        )

    def _line(self, _frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line":
            self._left -= 1
            if self._left == 0:
                sys.settrace(None)
                self._action()
        return self._line


def cut_short(consumer: embedlog.Consumer, number: int) -> None:
    """Wake up a waiting poll before its `number`th line."""
    try:
        with AtLine(number, consumer.wakeup):
            consumer.poll(600_000)
    except embedlog.WakeupError:
        pass
    else:
        raise AssertionError(f"line {number}: nothing ended the poll")
    assert not consumer.poll(0), number
    consumer.close()


def interrupted(consumer: embedlog.Consumer, producer: embedlog.Producer, number: int) -> bool:
    """End a poll by Ctrl-C before its `number`th line of network code, then poll on.

    Return False if the poll has fewer lines.
    """
    offsets = [producer.send("events", b"before").result().offset]
    consumer.seek(("events", 0), offsets[0])
    read: list[int] = []
    is_interrupted = False
    try:
        with AtLine(number, interrupt, NETWORK):
            while not read:
                read += [record.offset for record in consumer.poll(600_000)]
    except KeyboardInterrupt:
        is_interrupted = True
    offsets.append(producer.send("events", b"after").result().offset)
    while offsets[-1] not in read:
        read += [record.offset for record in consumer.poll(_STUCK_AFTER_S * 1000)]
    assert read in (offsets, offsets[1:]), (number, offsets, read)
    consumer.close()
    return is_interrupted


def interrupt() -> None:
    raise KeyboardInterrupt


def main(what: str, way: str, membership: str, step: str) -> None:
    with (
        embedlog.open() as cluster,
        embedlog.Admin(cluster) as admin,
        embedlog.Producer(cluster) as producer,
    ):
        admin.create_topics(["events"]).check()
        target: Any = cluster if way == "in-process" else cluster.listen("127.0.0.1", 0).address

        def make() -> embedlog.Consumer:
            group = "readers" if membership == "group" else None
            # Short waits, so that a poll without records runs many lines.
            consumer = embedlog.Consumer(target, group_id=group, fetch_max_wait_ms=5)
            if group is None:
                consumer.assign([("events", 0)])
            else:
                consumer.subscribe(["events"])
                while not consumer.assignment():
                    consumer.poll(10)
            return consumer

        for number in range(1, _LINES_MAX, int(step)):
            faulthandler.dump_traceback_later(_STUCK_AFTER_S, exit=True)
            if what == "wakeup":
                cut_short(make(), number)
            elif not interrupted(make(), producer, number):
                break


if __name__ == "__main__":
    main(*sys.argv[1:])
