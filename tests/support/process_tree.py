"""The memory and CPU time of a process and of all it starts, seen from outside through /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_INTERVAL_S = 0.05


class Peak(NamedTuple):
    """The largest sizes of one kind of process, in bytes."""

    own: int
    """Of one process, without what it maps of files: sampled."""
    resident: int
    """Of one process, mapped files and all: the kernel's own mark."""
    together: int
    """Of all at one time, without what they map of files: sampled."""


class Watch:
    """Samples the tree below `pid` until it is closed.

    `kind_of` is given a pid and the name of its program, and says what kind of process that is.
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
            with suppress(OSError, KeyError):  # it has ended
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
    """(pid, name of the program) of a process and of all below it."""
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
    """The CPU time so far of a process and of all below it, those that have ended included."""
    ticks = 0
    for pid, _ in descendants(root):
        with suppress(OSError):  # it has ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(
                map(int, fields[11:15])
            )  # own, and of children: in user mode, in the kernel
    return ticks / os.sysconf("SC_CLK_TCK")


def read_status(pid: int) -> dict[str, str]:
    """The lines of /proc/<pid>/status."""
    text = Path(f"/proc/{pid}/status").read_text()
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def _size(text: str) -> int:
    return int(text.removesuffix(" kB")) * 1024
