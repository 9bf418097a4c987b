"""A KeyboardInterrupt leaves an operation done or not done."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_interrupt_at_any_opcode_breaks_nothing() -> None:
    run("interrupts").check()
