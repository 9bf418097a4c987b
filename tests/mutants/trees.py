"""A copy of the tree in which one mutant at a time is planted, and pytest runs in it."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tests.mutants import witness
from tests.mutants.lists import Mutant

LINKED = (".venv", ".tools")
"""Folders of the tree that a copy shares."""
LEFT_OUT = (".git", "__pycache__", ".hypothesis", ".*_cache", "*.egg-info", "build", "dist")
MEMORY = Path("/dev/shm")
ROOM = 2 << 30
"""Free bytes in memory that a copy asks for."""
GRACE_S = 10.0
"""Time for the clean-up of a failed test."""
NOTHING_FAILED = (0, 5)
"""Exit codes of pytest: all passed, no test was chosen."""

_serials = itertools.count(1)


class Stopped(Exception):
    """The run was stopped, so it has no outcome."""


class Outcome(NamedTuple):
    """The end of one run of pytest."""

    failed: str | None
    """Id of the test that failed or hung; empty if pytest itself failed; None if all passed."""
    hung: bool
    log: str
    """The last lines of the output."""


class Tree:
    """A copy of `root`, removed at the end of its `with` block."""

    def __init__(self, root: Path) -> None:
        in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
        self._home = Path(
            tempfile.mkdtemp(prefix="embedlog-mutants-", dir=MEMORY if in_memory else None)
        )
        self._origin = root
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False
        self.root = self._home / "tree"
        shutil.copytree(root, self.root, ignore=shutil.ignore_patterns(*LEFT_OUT, *LINKED))
        for name in LINKED:
            if (root / name).exists():
                (self.root / name).symlink_to((root / name).resolve())
        shutil.copy(witness.__file__, self._home / "mutant_witness.py")

    def __enter__(self) -> Tree:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._kill()
        shutil.rmtree(self._home, ignore_errors=True)

    @contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """Plant a mutant for the time of a `with` block.

        Python takes bytecode as fresh if it has the source's size and time, in seconds. So each
        planted file gets a time that no other version of it had.
        """
        path = self.root / mutant.file
        before, times = path.read_bytes(), path.stat()
        path.write_text(mutant.source(self.root))
        planted_s = 1_000_000_000 + next(_serials)
        os.utime(path, (planted_s, planted_s))
        try:
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def pytest(self, *arguments: str, limit_s: float) -> Outcome:
        """Run pytest in the copy until the first failure; raise Stopped after `stop`.

        A test is cut after `limit_s`. If that does not help, or no test runs for twice this time,
        the run has hung.
        """
        told, log = self._home / "told", self._home / "log"
        told.write_text("")
        with log.open("wb") as output:
            self._process = process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "pytest", "-x", "-q", "--tb=line", "--color=no"),
                    *("-p", "no:cacheprovider", "-p", "mutant_witness", f"--timeout={limit_s:g}"),
                    *("--hypothesis-seed=0", f"--basetemp={self._home / 'tests'}", *arguments),
                ],
                cwd=self.root,
                env=self._environment(told),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        hung = not self._wait(process, told, limit_s)
        self._kill()
        if self._is_stopped:
            raise Stopped
        shutil.rmtree(self._home / "hypothesis", ignore_errors=True)
        lines = told.read_text().splitlines()
        failed = [line[5:] for line in lines if line.startswith("fail ")]
        text = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        if failed:
            return Outcome(failed[0], False, text)
        if hung:
            return Outcome(lines[-1][4:] if lines else "", True, text)
        return Outcome(None if process.returncode in NOTHING_FAILED else "", False, text)

    def stop(self) -> None:
        """End the run of pytest, for another thread."""
        self._is_stopped = True
        self._kill()

    def _kill(self) -> None:
        """Kill the run of pytest with the processes that its tests have started."""
        process = self._process
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _wait(self, process: subprocess.Popen[bytes], told: Path, limit_s: float) -> bool:
        """Wait for the end of the run; return whether it ended, or a test failed, in time."""
        size, has_failed = 0, False
        end = time.monotonic() + 2 * limit_s
        while time.monotonic() < end:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
                return True
            if not has_failed and told.stat().st_size != size:
                text = told.read_text()
                size, has_failed = len(text), "\nfail " in f"\n{text}"
                end = time.monotonic() + (GRACE_S if has_failed else 2 * limit_s)
        return has_failed

    def _environment(self, told: Path) -> dict[str, str]:
        left_out = ("PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER")
        kept = {name: value for name, value in os.environ.items() if name not in left_out}
        return kept | {
            "PYTHONPATH": os.pathsep.join([str(self.root), str(self._home)]),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self._home / "hypothesis"),
            "MUTANT_WITNESS": str(told),
        }
