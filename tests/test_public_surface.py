"""The public names, one by one: a change here is a change for every user."""

from __future__ import annotations

import ast
import doctest
import functools
import importlib
import importlib.metadata
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import embedlog
import wire

PUBLIC = {
    "embedlog": set(embedlog.__all__),
    "embedlog.aio": {"Admin", "Consumer", "Producer", "ShareConsumer"},
    "wire": {
        "LATEST", "InvalidMessage", "MalformedMessage", "Payload", "RemoteProtocolError",
        "UnknownApi", "UnknownVersion", "UnsupportedField", "declaration", "decode", "decode_from",
        "encode", "encode_buffers", "explain", "request_class", "response_class", "schema_module",
        "valid_versions",
    },
}  # fmt: skip
PLAIN_VALUES = {"LATEST", "Payload"}


def test_type_checkers_see_the_public_names() -> None:
    """Python reads a table, and type checkers read imports: both must have the same names."""
    seen = {
        alias.asname: getattr(importlib.import_module(str(node.module)), alias.name)
        for node in ast.walk(_tree(str(embedlog.__file__)))
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
    }
    assert seen.keys() == {*embedlog.__all__, "__version__"}
    for name, value in seen.items():
        assert getattr(embedlog, str(name)) is value, name


@pytest.mark.parametrize("module", PUBLIC)
def test_all_lists_exactly_the_public_names(module: str) -> None:
    loaded = importlib.import_module(module)
    assert set(loaded.__all__) == PUBLIC[module]
    assert set(loaded.__all__) <= set(dir(loaded))


@pytest.mark.parametrize("module", PUBLIC)
def test_each_public_name_resolves_and_explains_itself(module: str) -> None:
    loaded = importlib.import_module(module)
    values = {name: getattr(loaded, name) for name in PUBLIC[module]}
    silent = {name for name, value in values.items() if not inspect.getdoc(value)}
    assert not silent - PLAIN_VALUES


@pytest.mark.parametrize("name", ["Admin", "Cluster", "Consumer", "Producer", "ShareConsumer"])
def test_public_methods_explain_themselves(name: str) -> None:
    for method, value in vars(getattr(embedlog, name)).items():
        if callable(value) and not method.startswith("_"):
            assert inspect.getdoc(value), f"{name}.{method} has no docstring"


@pytest.mark.parametrize(
    "name",
    [
        "AcknowledgeType", "Admin", "CloseOptions", "Cluster", "Consumer", "ConsumerGroupMetadata",
        "ConsumerRebalanceListener", "ConsumerRecord", "OffsetAndMetadata", "Producer",
        "ProducerRecord", "RecordMetadata",
        "RoundRobinPartitioner", "ShareConsumer", "ShareRecord", "ShareRecords",
        "SubscriptionPattern", "open", "open_reader",
    ],
)  # fmt: skip
def test_examples_in_public_docstrings_hold(name: str) -> None:
    value = getattr(embedlog, name)
    finder = doctest.DocTestFinder(recurse=True)
    found = [test for test in finder.find(value, name, globs={"embedlog": embedlog})
             if test.examples]  # fmt: skip
    assert found, f"{name} shows no example"
    for example in found:
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
        assert result.failed == 0, f"{name}: {result}"


NOT_AWAITED = {
    "Admin": set(),
    "Consumer": {"commit_async", "wakeup"},  # asyncio tasks have their own cancellation
    "ShareConsumer": {"commit_async", "wakeup"},
    "Producer": {"run", "wait_for"},  # only futures of threads have it
}


@pytest.mark.parametrize("name", NOT_AWAITED)
def test_the_clients_for_asyncio_have_the_same_calls(name: str) -> None:
    ours, theirs = getattr(embedlog.aio, name), getattr(embedlog, name)
    calls = {each for each in dir(theirs) if not each.startswith("_")}
    assert {each for each in dir(ours) if not each.startswith("_")} == calls - NOT_AWAITED[name]
    for call in calls - NOT_AWAITED[name]:
        assert inspect.getdoc(getattr(ours, call)), f"{name}.{call} has no docstring"
        assert _parameters(ours, call) == _parameters(theirs, call), call


def _parameters(kind: type, call: str) -> list[tuple[str, object, object]]:
    """Return names, kinds and defaults, without parameters that only callbacks need."""
    parameters = inspect.signature(getattr(kind, call)).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters if p.name != "on_delivery"]


@pytest.mark.parametrize("name", ["Admin", "Consumer", "Producer", "ShareConsumer"])
def test_examples_for_asyncio_hold(name: str) -> None:
    found = doctest.DocTestFinder().find(getattr(embedlog.aio, name), name, globs={})
    examples = [test for test in found if test.examples and "asyncio" in (test.docstring or "")]
    assert examples, f"{name} shows no example"
    for example in examples:
        assert doctest.DocTestRunner().run(example).failed == 0, name


@functools.cache
def _tree(path: str) -> ast.Module:
    """Return a class of a file and its bases as trees; bases may stand in other files."""
    return ast.parse(Path(path).read_text())


@functools.cache
def _imports(path: str) -> dict[str, str]:
    return {
        each.asname or each.name: node.module
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ImportFrom) and node.module
        for each in node.names
    }


def _returned(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the public methods that return a class of this library, with the name of the class."""
    for base in kind.__mro__:
        if not base.__module__.startswith("embedlog"):
            continue
        path = str(sys.modules[base.__module__].__file__)
        known = _imports(path)
        for node in _tree(path).body:
            if not isinstance(node, ast.ClassDef) or node.name != base.__name__:
                continue
            for call in node.body:
                if isinstance(call, ast.FunctionDef) and call.returns and call.name[0] != "_":
                    for each in ast.walk(call.returns):
                        name = getattr(each, "id", "")
                        if known.get(name, "").startswith("embedlog"):
                            yield f"{kind.__name__}.{call.name}", name


NOT_TO_BE_NAMED = {
    "Batch",  # `wire` documents its batches
    "Broker",  # objects behind the request door may change
    "Controller",
    "InProcessTransport",
    "LogManager",
    "Transport",
    "Pending",
    "ServedAddress",
}


def test_classes_that_public_calls_return_are_public() -> None:
    kinds = [getattr(embedlog, name) for name in embedlog.__all__]
    found = {
        f"{call}: {name}"
        for kind in kinds
        if isinstance(kind, type)
        for call, name in _returned(kind)
        if name not in embedlog.__all__ and name not in NOT_TO_BE_NAMED
        if not (len(name) == 1 and name.isupper())  # a type variable
    }
    assert not found


def test_modules_in_documents_are_available_without_an_import() -> None:
    code = "import embedlog; embedlog.errors.UnknownTopicOrPartition; embedlog.testing.sim_runtime"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_version_is_that_of_the_distribution() -> None:
    assert embedlog.__version__ == importlib.metadata.version("embedlog")


def test_a_wrong_name_is_an_attribute_error() -> None:
    for module in (embedlog, wire):
        with pytest.raises(AttributeError, match="no_such_name"):
            module.no_such_name  # noqa: B018
