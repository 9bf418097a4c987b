"""The examples in the docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import embedlog.testing
from embedlog.testing import Kafka, topics

pytestmark = pytest.mark.slow

MODULES = [each.name for each in pkgutil.walk_packages(topics.__path__, f"{topics.__name__}.")]


def _globals() -> dict[str, object]:
    return {name: getattr(embedlog.testing, name) for name in embedlog.testing.__all__}


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_modules_hold(name: str) -> None:
    module = importlib.import_module(name)
    found = {**_globals(), **vars(module)}
    assert doctest.testmod(module, extraglobs=found).failed == 0


@pytest.mark.parametrize("name", ["topic", "assert_produces", "assert_nothing_produced", "commit"])
def test_examples_of_kafka_hold(name: str) -> None:
    examples = doctest.DocTestFinder().find(getattr(Kafka, name), name, globs=_globals())
    assert examples[0].examples
    for each in examples:
        assert doctest.DocTestRunner().run(each).failed == 0


def test_all_public_names_resolve_and_load_when_they_are_used() -> None:
    for name in embedlog.testing.__all__:
        assert getattr(embedlog.testing, name) is not None
        assert name in dir(embedlog.testing)
    with pytest.raises(AttributeError, match="no attribute 'recc'"):
        embedlog.testing.recc  # type: ignore[attr-defined]
    loaded = "import embedlog.testing, sys; print('embedlog.testing.topics' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"
