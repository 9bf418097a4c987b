"""`cluster.door`: a paused broker delays requests and answers; a stopped broker breaks them."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import errors
from embedlog.broker.context import RequestContext
from embedlog.cluster.door import Door
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from wire.api_keys import ApiKey


class Core:
    """A broker that answers with the request, at once or through the pending `later`."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.later: Pending[Any] | None = None

    def handle(self, _context: RequestContext, request: Any) -> Any:
        self.asked.append(request)
        return request if self.later is None else self.later


class Setting:
    """A door before a `Core`, and a controller that may be out of reach."""

    def __init__(self) -> None:
        self.reaches_controller = True
        self.core = Core()
        self.door = Door(1, lambda: self.reaches_controller, sim_runtime(seed=1))
        self.door.open(self.core)  # type: ignore[arg-type]

    def ask(self, request: str, api_key: int = ApiKey.METADATA) -> Any:
        return self.door.handle(RequestContext(api_key, 0), request)  # type: ignore[arg-type]


@pytest.fixture
def setting() -> Setting:
    return Setting()


def test_an_open_door_passes_requests(setting: Setting) -> None:
    assert setting.ask("a") == "a"


def test_requests_wait_while_the_broker_is_paused_and_keep_their_order(setting: Setting) -> None:
    setting.door.pause()
    first, second = setting.ask("a"), setting.ask("b")
    assert not setting.core.asked
    setting.door.resume()
    assert (first.result(), second.result()) == ("a", "b")
    assert setting.core.asked == ["a", "b"]


def test_answers_wait_while_the_broker_is_paused(setting: Setting) -> None:
    setting.core.later = Pending()
    answer = setting.ask("a")
    setting.door.pause()
    setting.core.later.complete("later")
    assert not answer.done()
    setting.door.resume()
    assert answer.result() == "later"


def test_waiting_requests_fail_as_a_broken_connection_when_the_broker_stops(
    setting: Setting,
) -> None:
    setting.core.later = Pending()
    waiting = setting.ask("a")
    setting.door.close()
    assert isinstance(waiting.error(), errors.Network)
    assert isinstance(setting.ask("b").error(), errors.Network)
    setting.core.later.complete("too late")


def test_requests_for_the_controller_wait_until_it_is_reachable(setting: Setting) -> None:
    setting.reaches_controller = False
    waiting = setting.ask("topics", ApiKey.CREATE_TOPICS)
    assert setting.ask("metadata") == "metadata"
    setting.door.try_again()
    assert not waiting.done()
    setting.reaches_controller = True
    setting.door.try_again()
    assert waiting.result() == "topics"
