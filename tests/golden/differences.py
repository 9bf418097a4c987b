"""What embedlog answers otherwise than Apache Kafka 4.4.0, on purpose, and why.

A row names the scenario, a pattern for the step (`api version note`), a pattern for the path
inside the answer, and the reason. Everything that no row names is equal.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple


class Difference(NamedTuple):
    """One deliberate difference; the three patterns are shell-style."""

    scenario: str
    step: str
    path: str
    reason: str

    def covers(self, scenario: str, step: str, path: str) -> bool:
        """Does this row name that place?"""
        return (
            fnmatchcase(scenario, self.scenario)
            and fnmatchcase(step, self.step)
            and fnmatchcase(path, self.path)
        )


DIFFERENCES: list[Difference] = []
