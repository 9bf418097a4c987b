"""The progress of a seed's sequence of workloads.

Kept in a file, it splits a run of many hours into pieces, for any number of processes:

    FILE          JSON: the seed, the number of tried workloads, and their figures
    FILE.images   8 bytes of each image that was checked: images count once, and the file
                  knows the counted ones
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import numpy as np

from tests.crash.report import Options, Report

if TYPE_CHECKING:
    from collections.abc import Iterable

SAVED_EVERY_S = 60.0


class Progress:
    """Adds up workloads, in order; `report` has the sum, `workloads` is their number."""

    def __init__(self, name: str, options: Options) -> None:
        """Continue from the file of `options`, with its seed, if it exists."""
        self._path = options.progress
        self._known = np.empty(0, np.uint64)
        """Digests of the counted images, sorted, and the digests since the last save:"""
        self._new: set[int] = set()
        self._before_s = 0.0
        self.workloads = 0
        self.report = Report(name, options)
        if self._path and os.path.exists(self._path):
            self._load(name, options)
        self.report.add("images", 0)
        self._started = self._saved = time.monotonic()

    def add(self, part: Report, digests: Iterable[int]) -> None:
        """Add the report of the next workload, and the digests of the images it checked."""
        for digest in digests:
            if digest not in self._new and not self._is_known(digest):
                self._new.add(digest)
                self.report.add("images")
        self.report.take_in(part)
        self.workloads += 1
        if time.monotonic() - self._saved > SAVED_EVERY_S:
            self.save()

    def _is_known(self, digest: int) -> bool:
        slot = int(self._known.searchsorted(np.uint64(digest)))
        return slot < len(self._known) and int(self._known[slot]) == digest

    def is_over(self) -> bool:
        """Return whether the time limit is over."""
        given = self.report.options.seconds
        return 0 < given < time.monotonic() - self._started

    def save(self) -> None:
        """Write the file. After a crash in between, too many images are known, so too few are
        counted.
        """
        if not self._path:
            return
        self._saved = time.monotonic()
        new = np.fromiter(self._new, np.uint64, len(self._new))
        self._known = np.union1d(self._known, new)
        self._new.clear()
        self._known.tofile(f"{self._path}.images.tmp")
        os.replace(f"{self._path}.images.tmp", f"{self._path}.images")
        report = self.report
        state = {
            "seed": report.options.seed,
            "soak": report.options.soak,
            "workloads": self.workloads,
            "seconds": self._before_s + self._saved - self._started,
            "figures": report.figures,
            "failures": report.failures,
            "failure_count": report.failure_count,
        }
        with open(f"{self._path}.tmp", "w") as file:
            json.dump(state, file, indent=1)
        os.replace(f"{self._path}.tmp", self._path)

    def _load(self, name: str, options: Options) -> None:
        with open(self._path) as file:
            state = json.load(file)
        self._known = np.fromfile(f"{self._path}.images", np.uint64)
        self._before_s = state["seconds"]
        self.workloads = state["workloads"]
        assert state["soak"] == options.soak, "it is the file of runs of the other size"
        report = self.report = Report(name, options._replace(seed=state["seed"]))
        report.figures = state["figures"]
        report.failures = state["failures"]
        report.failure_count = state["failure_count"]
        report.note(f"{self._before_s:,.0f} s of the sum are from earlier runs")
