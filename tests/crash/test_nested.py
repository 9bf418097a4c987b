"""A public call inside another is refused or made as a whole; a close waits for the outer call."""

from __future__ import annotations

import random

import pytest

from tests.crash.__main__ import run
from tests.crash.nested import nested_in
from tests.crash.report import Options, Report


@pytest.mark.parametrize("name", ["append", "send of a second", "poll"])
def test_a_call_inside_a_call_breaks_nothing(name: str) -> None:
    report = Report("nested", Options(seed=2, count=32))
    nested_in(report, name, 32, random.Random(2))
    report.check()


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_a_call_at_any_opcode_of_another_breaks_nothing() -> None:
    run("nested").check()
