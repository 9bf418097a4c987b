"""Forked processes that report through a pipe, until they end or are killed.

The parent reads the pipe to its end, so that it gets each whole line of a dead child.
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
"""Write one whole line: at most 4,000 bytes, without a newline in them."""

HUNG_AFTER_S = 60.0
"""A child that writes no expected line for this time hangs."""

FAILED = 9
"""The exit code of a child whose work raised an exception."""


class Child:
    """A forked process that runs `work(say)` and ends; with `gate`, it starts when the
    gate opens.
    """

    def __init__(self, work: Callable[[Say], object], *, gate: Gate | None = None) -> None:
        reader, writer = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        countdown = sys.gettrace()
        sys.settrace(None)  # inherited from the parent; code that runs at the fork does not count
        self.pid = os.fork()
        if self.pid == 0:
            code = FAILED
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
        sys.settrace(countdown)
        os.close(writer)
        os.set_blocking(reader, False)
        self._reader = reader
        self._unfinished = b""
        self.is_ended = False
        """Return whether the pipe, and therefore the process, has ended."""
        self._status: int | None = None

    def read(self, timeout_s: float) -> list[bytes]:
        """Return the whole lines so far, after waiting up to `timeout_s` for the first; [] at the
        end.
        """
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
        """Return the next line; b"" if the child ended or hangs."""
        deadline = time.monotonic() + HUNG_AFTER_S
        while not self.is_ended and time.monotonic() < deadline:
            lines = self.read(1.0)
            if lines:
                assert len(lines) == 1, lines
                return lines[0]
        return b""

    def rest(self) -> list[bytes]:
        """Yield every line until the pipe ends: the child has ended, or was killed."""
        lines: list[bytes] = []
        deadline = time.monotonic() + HUNG_AFTER_S
        while not self.is_ended and time.monotonic() < deadline:
            lines += self.read(1.0)
        return lines

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            self._status = os.waitpid(self.pid, 0)[1]

    def end(self, timeout_s: float = HUNG_AFTER_S) -> str:
        """Wait for the end. Return "" if the work was done, else how it ended; a hung child is
        killed.
        """
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
        """Return how it ended: "" if the work was done. Requires: a call of `kill` or `end`."""
        assert self._status is not None
        if os.WIFSIGNALED(self._status):
            return f"by signal {os.WTERMSIG(self._status)}"
        code = os.WEXITSTATUS(self._status)
        return f"with exit code {code}" if code else ""

    def close(self) -> None:
        """Kill the child if it still runs, and close the pipe."""
        self.kill()
        if self._reader >= 0:
            os.close(self._reader)
            self._reader = -1


class Gate:
    """A gate at which several children wait, to start at one moment."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def wait(self) -> None:
        """In a child: wait until the parent opens the gate."""
        os.close(self._writer)
        os.read(self._reader, 1)
        os.close(self._reader)

    def open(self) -> None:
        """In the parent: let all children start."""
        os.close(self._writer)
        os.close(self._reader)
