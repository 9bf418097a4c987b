"""`cluster.faults.network`: calls that pass, wait, come late, or fail."""

from __future__ import annotations

import pytest

from embedlog import errors
from embedlog.cluster.faults.network import CONTROLLER, ClusterNetwork
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime

TIMEOUT_MS = 10_000


@pytest.fixture
def runtime() -> SimRuntime:
    return sim_runtime(seed=1)


@pytest.fixture
def network(runtime: SimRuntime) -> ClusterNetwork:
    return ClusterNetwork(runtime)


def ask(
    network: ClusterNetwork, source: int, target: int, done: list[str], name: str
) -> Pending[str]:
    def perform() -> str:
        done.append(name)
        return name

    return network.call(source, target, perform, timeout_ms=TIMEOUT_MS)


def test_a_call_passes_directly_without_faults(network: ClusterNetwork) -> None:
    done: list[str] = []
    assert ask(network, 1, 2, done, "a").result() == "a"
    assert done == ["a"]


def test_an_error_of_the_target_is_the_answer(network: ClusterNetwork) -> None:
    def refuse() -> None:
        raise errors.NotLeaderOrFollower()

    pending = network.call(1, 2, refuse, timeout_ms=TIMEOUT_MS)
    assert isinstance(pending.error(), errors.NotLeaderOrFollower)


def test_a_cut_link_keeps_calls_until_it_is_mended(
    network: ClusterNetwork, runtime: SimRuntime
) -> None:
    done: list[str] = []
    network.cut(1, 2)
    first, second = (ask(network, 1, 2, done, name) for name in "ab")
    runtime.scheduler.run_for(1_000)
    assert not done
    network.heal()
    runtime.scheduler.run_for(0)
    assert (first.result(), second.result(), done) == ("a", "b", ["a", "b"])


def test_a_call_that_timed_out_is_never_performed(
    network: ClusterNetwork, runtime: SimRuntime
) -> None:
    done: list[str] = []
    network.cut(1, 2)
    pending = ask(network, 1, 2, done, "a")
    runtime.scheduler.run_for(TIMEOUT_MS + 1_000)
    assert isinstance(pending.error(), errors.RequestTimedOut)
    network.heal()
    runtime.scheduler.run_for(1_000)
    assert not done


def test_the_answer_of_a_performed_call_may_be_lost(
    network: ClusterNetwork, runtime: SimRuntime
) -> None:
    done: list[str] = []
    network.cut(2, 1)
    pending = ask(network, 1, 2, done, "a")
    assert done == ["a"]
    runtime.scheduler.run_for(TIMEOUT_MS + 1_000)
    assert isinstance(pending.error(), errors.RequestTimedOut)


def test_a_slow_link_delivers_late_and_in_order(
    network: ClusterNetwork, runtime: SimRuntime
) -> None:
    done: list[str] = []
    network.delay(1, 2, 50)
    pending = ask(network, 1, 2, done, "a")
    network.delay(1, 2, 10)
    ask(network, 1, 2, done, "b")
    runtime.scheduler.run_for(49)
    assert not done
    runtime.scheduler.run_for(1)
    assert (done, pending.result()) == (["a", "b"], "a")


def test_a_split_cuts_both_ways_between_groups_alone(network: ClusterNetwork) -> None:
    network.split({1}, {2, 3})
    assert network.is_cut(1, 2)
    assert network.is_cut(3, 1)
    assert not network.is_cut(2, 3)
    assert not network.is_cut(1, CONTROLLER)


def test_a_slow_answer_times_out(network: ClusterNetwork, runtime: SimRuntime) -> None:
    never: Pending[str] = Pending()
    pending = network.call(1, 2, lambda: never, timeout_ms=TIMEOUT_MS)
    runtime.scheduler.run_for(TIMEOUT_MS + 1_000)
    assert isinstance(pending.error(), errors.RequestTimedOut)


def test_closing_ends_every_call(network: ClusterNetwork) -> None:
    network.cut(1, 2)
    pending = ask(network, 1, 2, [], "a")
    network.close()
    assert isinstance(pending.error(), errors.Network)


def test_a_mended_link_keeps_messages_in_order(
    network: ClusterNetwork, runtime: SimRuntime
) -> None:
    done: list[str] = []
    network.cut(1, 2)
    ask(network, 1, 2, done, "a")
    network.heal()
    ask(network, 1, 2, done, "b")
    runtime.scheduler.run_for(0)
    assert done == ["a", "b"]


def test_a_mended_link_is_as_fast_as_before(network: ClusterNetwork) -> None:
    done: list[str] = []
    network.delay(1, 2, 1_000)
    network.heal()
    assert ask(network, 1, 2, done, "a").result() == "a"
