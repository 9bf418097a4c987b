"""Faults of the registry and their handles."""

from __future__ import annotations

import threading
from contextlib import suppress
from http.client import HTTPException

import pytest

from embedlog.errors import ClosedError, ConfigError, TimedOut
from embedlog.testing import Registry, UnfiredFault
from tests.testing.registry.calls import RECORD, Calls


def test_a_fault_refuses_so_often_as_it_says(call: Calls) -> None:
    with call.registry.fault("register", status=503, times=2) as fault:
        assert call.register("s", RECORD) == 50003
        assert call.register("s", RECORD) == 50003
        assert call.register("s", RECORD) == 1
    assert fault.hits == 2
    assert [each.path for each in fault.requests] == ["/subjects/s/versions"] * 3
    assert fault.requests[0].body == {"schema": RECORD}


@pytest.mark.parametrize(
    "what",
    ["GET", "list_subjects", "/subjects", "GET /sub*", "GET /subjects", "GET /*"],
)
def test_a_fault_matches_a_method_a_verb_or_a_path(call: Calls, what: str) -> None:
    with call.registry.fault(what, status=500, code=50002, message="gone") as fault:
        status, _, text = call.raw("GET", "/subjects")
        assert (status, text) == (500, '{"error_code":50002,"message":"gone"}')
        assert call.register("s", RECORD) == 1
    assert fault.hits == 1


def test_a_fault_acts_once_or_as_its_trigger_says(call: Calls) -> None:
    with call.registry.fault("list_subjects", status=500) as fault:
        assert [call.raw("GET", "/subjects")[0] for _ in range(3)] == [500, 200, 200]
    assert (fault.hits, fault.seen, len(fault.requests)) == (1, 3, 3)
    with call.registry.fault("list_subjects", status=500, always=True):
        assert [call.raw("GET", "/subjects")[0] for _ in range(3)] == [500] * 3
    with call.registry.fault("list_subjects", status=500, nth=2) as fault:
        assert [call.raw("GET", "/subjects")[0] for _ in range(3)] == [200, 500, 200]
    assert repr(fault).endswith("once, nth=2: 1 hits, 3 seen>")


def test_a_fault_after_the_work_loses_only_the_answer(call: Calls) -> None:
    with call.registry.fault("register", status=500, after=True, times=1):
        assert call.register("s", RECORD) == 50001
    assert call.registry.subjects() == ["s"]


def test_a_removed_fault_does_not_act_on_a_request_that_has_met_it_before(call: Calls) -> None:
    fault = call.registry.fault("list_subjects", status=500, always=True)
    assert call.raw("GET", "/subjects")[0] == 500
    fault.remove()
    assert not fault.take(fault.requests[0])
    assert (fault.hits, len(fault.requests)) == (1, 1)


def test_a_delay_ends_when_the_fault_is_removed(call: Calls) -> None:
    fault = call.registry.fault("list_subjects", delay=3600)
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(call("GET", "/subjects")))
    thread.start()
    fault.wait(1, timeout=30)
    assert not found
    fault.remove()
    thread.join(30)
    assert found == [[]]


def test_close_ends_a_delay() -> None:
    registry = Registry()
    fault = registry.fault("GET", delay=3600)
    call = Calls(registry)

    def list_subjects() -> None:
        with suppress(HTTPException, OSError):  # the connection may end before the answer
            call("GET", "/subjects")

    thread = threading.Thread(target=list_subjects)
    thread.start()
    fault.wait(1, timeout=30)
    registry.close()
    thread.join(30)
    assert not thread.is_alive()
    call.close()


def test_a_fault_that_no_request_met_fails() -> None:
    registry = Registry()
    with pytest.raises(UnfiredFault, match="'register'"), registry.fault("register", status=500):
        pass
    registry.fault("register", status=500)
    registry.fault("lookup", status=500, may_miss=True)
    with pytest.raises(UnfiredFault, match="'register'"):
        registry.close()


def test_the_error_of_the_test_comes_before_an_unfired_fault() -> None:
    with pytest.raises(ZeroDivisionError), Registry() as registry:
        registry.fault("register", status=500)
        1 / 0


def test_a_wait_ends_with_its_time(registry: Registry) -> None:
    fault = registry.fault("register", status=500, may_miss=True)
    with pytest.raises(TimedOut, match="expected 1 hits"):
        fault.wait(1, timeout=0.01)


@pytest.mark.parametrize(
    ("what", "hint"),
    [
        ("regster", "did you mean 'register'"),
        ("POTS", "did you mean 'POST'"),
        ("/subject/s", "did you mean '/subjects...'"),
        ("FETCH /subjects", "FETCH is no method"),
        ("", "known are"),
    ],
)
def test_a_rule_that_cannot_match_is_refused(registry: Registry, what: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint.replace("...", r"\.\.\.")):
        registry.fault(what, status=500)


@pytest.mark.parametrize(
    "given", [{}, {"status": 200}, {"status": 500, "times": 0}, {"status": 500, "delay": -1}]
)
def test_wrong_values_of_a_fault_are_refused(registry: Registry, given: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        registry.fault("register", **given)  # type: ignore[arg-type]


def test_a_fault_on_a_closed_registry_says_so() -> None:
    registry = Registry()
    registry.close()
    with pytest.raises(ClosedError, match="closed"):
        registry.fault("register", status=500)
