"""The examples in the docstrings of the test kit's parts."""

from __future__ import annotations

import doctest

import pytest

from embedlog import testing
from embedlog.testing.http.server import HttpServer
from embedlog.testing.registry.faults import RegistryFault
from embedlog.testing.registry.values import Schema

NAMES = {
    "ControlDoor": testing.ControlDoor,
    "HttpServer": HttpServer,
    "Registry": testing.Registry,
    "RegistryFault": RegistryFault,
    "RemoteKafka": testing.RemoteKafka,
    "Schema": Schema,
}


@pytest.mark.parametrize("name", NAMES)
def test_examples_hold(name: str) -> None:
    value = NAMES[name]
    found = [
        test
        for test in doctest.DocTestFinder().find(value, name, globs={name: value})
        if test.examples
    ]
    assert found, f"{name} shows no example"
    for example in found:
        assert doctest.DocTestRunner().run(example).failed == 0, name
