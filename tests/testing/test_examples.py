"""The examples in the docstrings of the test kit hold."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = (
    "clients.config",
    "container",
    "forms",
    "names",
    "plugin.environment",
    "plugin.leak_rules",
    "shape",
    "simulated_runtime",
    "simulation",
)


@pytest.mark.parametrize("module", MODULES)
def test_examples_hold(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"embedlog.testing.{module}"))
    assert result.attempted > 0
    assert result.failed == 0


def test_every_public_name_is_found_and_explains_itself() -> None:
    import embedlog.testing as kit

    for name in kit.__all__:
        assert getattr(kit, name).__doc__, name
        assert name in dir(kit)
    with pytest.raises(AttributeError, match="no_such_name"):
        kit.no_such_name  # noqa: B018


def test_type_checkers_see_the_public_names() -> None:
    import ast
    from pathlib import Path

    import embedlog.testing as kit

    tree = ast.parse(Path(str(kit.__file__)).read_text())
    seen = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
    }
    assert seen.keys() == set(kit.__all__)
    for name, place in seen.items():
        module, _, attribute = place.rpartition(".")
        assert getattr(importlib.import_module(module), attribute) is getattr(kit, str(name))
