"""Memory and CPU time of a process and its descendants, read from outside through /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_INTERVAL_S = 0.05


class Peak(NamedTuple):
    """The largest sizes, in bytes, of one kind of process."""

    own: int
    """Of one process, without mapped files: sampled."""
    resident: int
    """Of one process, with mapped files: the kernel's own peak value."""
    together: int
    """Of all processes at one time, without mapped files: sampled."""


class Watch:
    """Samples the tree below `pid` until it is closed.

    `kind_of` gets a pid and the name of its program, and returns the kind of the process.
    """

    def __init__(self, pid: int, kind_of: Callable[[int, str], str]) -> None:
        self._pid = pid
        self._kind_of = kind_of
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory")
        self.peaks: dict[str, Peak] = {}

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            self._sample()

    def _sample(self) -> None:
        sums: dict[str, int] = {}
        for pid, name in descendants(self._pid):
            with suppress(OSError, KeyError):  # the process has ended
                status = read_status(pid)
                own, high = _size(status["RssAnon"]), _size(status["VmHWM"])
                kind = self._kind_of(pid, name)
                sums[kind] = sums.get(kind, 0) + own
                before = self.peaks.get(kind, Peak(0, 0, 0))
                self.peaks[kind] = Peak(
                    max(before.own, own), max(before.resident, high), before.together
                )
        for kind, size in sums.items():
            before = self.peaks[kind]
            self.peaks[kind] = before._replace(together=max(before.together, size))


def descendants(root: int) -> Iterator[tuple[int, str]]:
    """Yield (pid, name of the program) of a process and its descendants."""
    names: dict[int, str] = {}
    children: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        with suppress(OSError):
            begin, _, rest = (path / "stat").read_text().rpartition(")")
            names[int(path.name)] = begin.partition("(")[2]
            children.setdefault(int(rest.split()[1]), []).append(int(path.name))
    todo = [root]
    while todo:
        pid = todo.pop()
        if pid in names:
            yield pid, names[pid]
        todo += children.get(pid, ())


def cpu_seconds(root: int) -> float:
    """Return the CPU time of a process and its descendants, including ended ones."""
    ticks = 0
    for pid, _ in descendants(root):
        with suppress(OSError):  # the process has ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))  # own and of children, in user and in kernel mode
    return ticks / os.sysconf("SC_CLK_TCK")


def read_status(pid: int) -> dict[str, str]:
    """The lines of /proc/<pid>/status."""
    text = Path(f"/proc/{pid}/status").read_text()
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def _size(text: str) -> int:
    return int(text.removesuffix(" kB")) * 1024
