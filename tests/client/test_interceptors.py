"""The chain of interceptors: order, what each one sees, and what becomes of their exceptions."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from embedlog.client.interceptors import InterceptorChain


class Adds:
    def __init__(self, letter: str, heard: list[Any] | None = None) -> None:
        self.letter = letter
        self.heard = heard if heard is not None else []

    def on_send(self, record: str) -> str:
        return record + self.letter

    def on_acknowledgement(self, metadata: Any, error: Any) -> None:
        self.heard.append((self.letter, metadata, error))

    def close(self) -> None:
        self.heard.append((self.letter, "closed"))


class Raises(Adds):
    def on_send(self, record: str) -> str:
        raise ValueError(f"will not have {record}")

    def on_acknowledgement(self, metadata: Any, error: Any) -> None:
        raise ValueError("will not hear")

    def close(self) -> None:
        raise ValueError("will not close")


class Deaf:
    """None of the methods."""


def test_each_gets_what_the_one_before_it_made() -> None:
    chain = InterceptorChain([Adds("a"), Deaf, Adds("b")], {})
    assert chain.transform("on_send", "-") == "-ab"
    assert len(chain) == 3


def test_all_are_told_in_order_and_closed_in_order() -> None:
    heard: list[Any] = []
    chain = InterceptorChain([Adds("a", heard), Adds("b", heard)], {})
    chain.tell("on_acknowledgement", "where", None)
    chain.close()
    assert heard == [("a", "where", None), ("b", "where", None), ("a", "closed"), ("b", "closed")]


def test_what_one_raises_is_logged_and_the_last_good_value_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Any] = []
    chain = InterceptorChain([Adds("a"), Raises("x"), Adds("b", heard)], {})
    with caplog.at_level(logging.WARNING, "embedlog.client"):
        assert chain.transform("on_send", "-") == "-ab"
        chain.tell("on_acknowledgement", "where", None)
        chain.close()
    assert [record.getMessage() for record in caplog.records] == [
        "Raises.on_send raised and was ignored",
        "Raises.on_acknowledgement raised and was ignored",
        "Raises.close raised and was ignored",
    ]
    assert heard == [("b", "where", None), ("b", "closed")]


def test_an_interrupt_is_no_error_of_the_interceptor() -> None:
    class Interrupted:
        def on_send(self, record: str) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        InterceptorChain([Interrupted], {}).transform("on_send", "-")


def test_a_class_is_called_and_configured_with_the_clients_settings() -> None:
    seen: list[Any] = []

    class Configured:
        def configure(self, settings: Any) -> None:
            seen.append(settings["client.id"])

    InterceptorChain([Configured, Configured()], {"client.id": "me"})
    assert seen == ["me", "me"]


def test_an_interceptor_that_cannot_be_made_stops_the_client() -> None:
    class Broken:
        def configure(self, settings: Any) -> None:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        InterceptorChain([Broken], {})
