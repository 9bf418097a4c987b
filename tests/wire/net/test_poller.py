"""The waker, which makes a poll return."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

from wire.net.poller import READ, WRITE, EpollPoller, SelectorPoller, Waker


@pytest.mark.parametrize("poller", [EpollPoller, SelectorPoller])
def test_a_waker_is_good_again_after_each_look(poller: Callable[[], Any]) -> None:
    waker, waiting = Waker(), poller()
    waiting.register(waker.fd, READ)
    for _ in range(3):
        assert waiting.poll(0) == []
        waker.clear()  # after a spurious wake-up
        waker.wake()
        waker.wake()
        assert [fd for fd, _ in waiting.poll(0)] == [waker.fd]
        waker.clear()
    waiting.close()
    waker.close()


def test_ctrl_c_in_the_middle_of_a_look_does_not_silence_a_waker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waker, poller = Waker(), EpollPoller()
    poller.register(waker.fd, READ)
    read = os.read

    def interrupted(*arguments: Any) -> bytes:
        read(*arguments)
        raise KeyboardInterrupt

    waker.wake()
    with monkeypatch.context() as patched:
        patched.setattr(os, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            waker.clear()
    waker.wake()
    assert poller.poll(0) != []
    poller.close()
    waker.close()


def test_a_waker_that_a_forked_child_has_abandoned_waits_for_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread of the parent may have been inside `wake` during the fork."""
    waker = Waker()
    has_written, may_go_on = Event(), Event()
    write = os.write

    def lingers(fd: int, data: bytes) -> int:
        size = write(fd, data)
        has_written.set()
        may_go_on.wait(10)
        return size

    monkeypatch.setattr(os, "write", lingers)
    first = Thread(target=waker.wake)
    first.start()
    has_written.wait(10)
    waker.clear()
    waker.abandon()
    second = Thread(target=waker.wake, daemon=True)
    second.start()
    second.join(5)
    is_stuck = second.is_alive()
    may_go_on.set()
    first.join()
    assert not is_stuck


@pytest.mark.parametrize("make", [EpollPoller, SelectorPoller])
def test_a_socket_is_reported_only_for_what_it_is_watched(make: Callable[[], Any]) -> None:
    poller = make()
    one, other = socket.socketpair()
    with one, other:
        other.send(b"x")
        poller.register(one.fileno(), 0)
        for mask in (0, READ, 0, WRITE, READ | WRITE, READ, 0):
            poller.modify(one.fileno(), mask)
            assert poller.poll(0) == ([(one.fileno(), mask)] if mask else [])
        poller.unregister(one.fileno())
        assert poller.poll(0) == []
    poller.close()
