"""Forked processes that report through a pipe, until they end or are killed.

What the pipe holds when a child dies is still read: a line that was written was said.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable

Say = Callable[[bytes], object]
"""Write one line, whole: at most 4,000 bytes, none of them a newline."""

HUNG_AFTER_S = 60.0
"""A child that says nothing for so long, where it should, hangs."""

FAILED = 9
"""The exit code of a child whose work raised."""


class Child:
    """A forked process that runs `work(say)` and ends; with `gate`, only once that is closed."""

    def __init__(self, work: Callable[[Say], object], *, gate: Gate | None = None) -> None:
        reader, writer = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = FAILED
            sys.settrace(None)  # a countdown is its parent's
            try:
                os.close(reader)
                if gate is not None:
                    gate.wait()
                work(lambda line: os.write(writer, line + b"\n"))
                code = 0
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(code)
        os.close(writer)
        os.set_blocking(reader, False)
        self._reader = reader
        self._unfinished = b""
        self.is_ended = False
        """Has the pipe ended, and with it the process?"""
        self._status: int | None = None

    def read(self, timeout_s: float) -> list[bytes]:
        """Whole lines said so far, waiting up to `timeout_s` for the first; [] also at its end."""
        if self.is_ended or not select.select([self._reader], [], [], timeout_s)[0]:
            return []
        try:
            data = os.read(self._reader, 1 << 18)
        except BlockingIOError:
            return []
        self.is_ended = not data
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        return lines

    def line(self) -> bytes:
        """The one next line; b"" when it ended without, or hangs."""
        deadline = time.monotonic() + HUNG_AFTER_S
        while not self.is_ended and time.monotonic() < deadline:
            lines = self.read(1.0)
            if lines:
                assert len(lines) == 1, lines
                return lines[0]
        return b""

    def rest(self) -> list[bytes]:
        """Every line until the pipe ends: the child has ended, or was killed."""
        lines: list[bytes] = []
        deadline = time.monotonic() + HUNG_AFTER_S
        while not self.is_ended and time.monotonic() < deadline:
            lines += self.read(1.0)
        return lines

    def kill(self) -> None:
        """SIGKILL, and wait for its end."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            self._status = os.waitpid(self.pid, 0)[1]

    def end(self, timeout_s: float = HUNG_AFTER_S) -> str:
        """Wait for its end; "" when its work was done, else how it ended: "hung" is killed."""
        deadline = time.monotonic() + timeout_s
        pause = 0.0002
        while self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = status
            elif time.monotonic() > deadline:
                self.kill()
                return "hung"
            else:
                time.sleep(pause)
                pause = min(pause * 2, 0.01)
        return self.how

    @property
    def how(self) -> str:
        """How it ended: "" when its work was done. Requires: it has, by `kill` or `end`."""
        assert self._status is not None
        if os.WIFSIGNALED(self._status):
            return f"by signal {os.WTERMSIG(self._status)}"
        code = os.WEXITSTATUS(self._status)
        return f"with exit code {code}" if code else ""

    def close(self) -> None:
        """Kill it when it still runs, and give back the pipe."""
        self.kill()
        if self._reader >= 0:
            os.close(self._reader)
            self._reader = -1


class Gate:
    """What several children wait at, to start at one moment."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def wait(self) -> None:
        """In a child: until the parent opens the gate."""
        os.close(self._writer)
        os.read(self._reader, 1)
        os.close(self._reader)

    def open(self) -> None:
        """In the parent: let everybody go."""
        os.close(self._writer)
        os.close(self._reader)
