"""Bugs that are planted on purpose: another of the programs must find each one.

A bug replaces a function or constant of the project by a wrong one, from outside, while a part of a
program runs at the size of CI. Each of these parts also runs once without a bug, and must then find
nothing.
"""

from __future__ import annotations

from unittest.mock import patch

from embedlog.runtime import locks
from tests.crash import faults, flips, images
from tests.crash.planted_bugs import BUGS
from tests.crash.report import Options, Report
from tests.crash.simulated import silence
from tests.support.sizes import size

STEP = size(6, full=1)
"""For a change every sixth bug is planted, at night all of them."""
CI_COUNT = len(BUGS[::STEP])
SOAK_COUNT = len(BUGS)
BITS = 7_000
"""Limit of flipped bits in the search for one bug: few bits show it."""


class Found(BaseException):
    """The first failure, which ends the search. No code of the project may catch it."""


class _Searching(Report):
    """A report that ends the search at its first failure."""

    def fail(self, what: str) -> None:
        self.failure_count += 1
        self.failures.append(what)
        raise Found


def run(options: Options) -> Report:
    report = Report("planted", options)
    silence()
    silent: dict[str, bool] = {}
    for bug in BUGS[:: 1 if options.soak else STEP][: options.count]:
        if bug.part not in silent:
            found, count = _search(bug.part, options)
            silent[bug.part] = found is None
            report.add("parts that are silent without a bug", int(found is None))
            if found is not None:
                report.fail(f"{bug.part} finds, without any bug, after {count} cases: {found}")
        if not silent[bug.part]:
            continue
        with bug.plant():
            found, count = _search(bug.part, options)
        if found is None:
            report.fail(f"{bug.name}: not found by {bug.part} in {count} cases")
            continue
        report.add("bugs found")
        report.note(f"{bug.name:<58} {bug.part:<40} {count:>5} cases: {found[:110]}")
    return report


def _search(part: str, options: Options) -> tuple[str | None, int]:
    """Return (the first failure, its number of cases) of one part of a program."""
    report = _Searching(part, options._replace(count=BITS))
    try:
        _run_part(report, part)
    except Found:
        pass
    except Exception as error:
        # A bug may break the workload itself.
        report.failures.append(f"{type(error).__name__}: {error}")
    except BaseException as error:
        if type(error).__name__ != "LockOrderViolation":
            raise
        report.failures.append(f"{type(error).__name__}: {error}")
    cases = sum(report.figures.get(name, 0) for name in ("images opened", "faults", "bits"))
    return (report.failures[0] if report.failures else None), cases


def _run_part(report: Report, part: str) -> None:
    """`part` is "images LEVEL OPERATION, ...", "faults LEVEL OPERATION, ..." or
    "flips ENDING LEVEL FRAGMENT"."""
    program, _, rest = part.partition(" ")
    if program == "flips":
        ending, level, fragment = rest.split(" ", 2)
        flips.flip_files(report, level, fragment, is_clean=ending == "clean")
        return
    level, _, names = rest.partition(" ")
    operations = tuple(names.split(", "))
    if program == "images":
        with patch.object(locks, "checked_lock", None):  # see `images`
            images.Images(report, is_thorough=True).run(level, operations)
    else:
        faults.sweep(report, level, operations)
