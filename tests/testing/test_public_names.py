"""The public names of the test kit: they load, explain themselves, and their examples hold."""

from __future__ import annotations

import doctest
import inspect

import pytest

from embedlog import testing
from embedlog.testing import names, timed_out

WITH_EXAMPLES = [
    testing.Group,
    testing.Partition,
    testing.Shape,
    testing.Transaction,
    testing.Transactions,
    testing.Waits,
    names.check_name,
    timed_out.WaitTimedOut,
]


@pytest.mark.parametrize("name", testing.__all__)
def test_each_public_name_resolves_and_explains_itself(name: str) -> None:
    assert inspect.getdoc(getattr(testing, name))
    assert name in dir(testing)


@pytest.mark.parametrize("value", WITH_EXAMPLES, ids=lambda each: each.__name__)
def test_examples_hold(value: object) -> None:
    globs = {
        "Shape": testing.Shape,
        "WaitTimedOut": testing.WaitTimedOut,
        "check_name": names.check_name,
    }
    found = [
        each
        for each in doctest.DocTestFinder().find(value, "example", globs=globs)
        if each.examples
    ]
    assert found
    for each in found:
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(each).failed == 0


def test_the_waits_for_asyncio_have_the_same_calls() -> None:
    calls = {each for each in dir(testing.Waits) if not each.startswith("_")} - {"aio"}
    assert {each for each in dir(testing.AioWaits) if not each.startswith("_")} == calls
    for call in calls:
        ours, theirs = getattr(testing.AioWaits, call), getattr(testing.Waits, call)
        assert inspect.signature(ours) == inspect.signature(theirs), call


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Grupp"):
        getattr(testing, "Grupp")  # noqa: B009 - a type checker would refuse the attribute
