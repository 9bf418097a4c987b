"""How a user's functions are named in errors."""

from __future__ import annotations

from functools import partial

from embedlog.client.user_code import describe


def function() -> None: ...


class Base:
    def method(self) -> None: ...

    def __call__(self) -> None: ...


class Derived(Base): ...


def test_functions_methods_classes_and_objects_are_named_with_their_module() -> None:
    here = __name__
    assert describe(function) == f"{here}.function"
    assert describe(partial(partial(function))) == f"{here}.function"
    assert describe(Derived().method) == f"{here}.Derived.method"
    assert describe(Derived()) == f"{here}.Derived"
    assert describe(Derived) == f"{here}.Derived"
    assert describe(lambda: None).endswith(".<locals>.<lambda>")
    assert describe(len) == "len"
