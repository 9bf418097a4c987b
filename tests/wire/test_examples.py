"""The examples in the docstrings of `wire` are true."""

from __future__ import annotations

import doctest
import importlib
from types import ModuleType

import pytest

NAMES = ["wire"] + [
    f"wire.{name}"
    for name in ("compiler", "connection", "framing", "headers", "primitives", "registry", "schema")
]


@pytest.mark.parametrize("name", NAMES)
def test_examples_in_docstrings_hold(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
