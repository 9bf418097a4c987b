"""A simulated broker whose partition locks know their holders: rule 12 of the layering chapter.

No delayed operation may complete while a partition lock is held. These tests check every completed
response for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.runtime.lock_order import CheckedLock, held_here
from embedlog.runtime.locks import Rank
from embedlog.testing import SimRuntime, sim_runtime
from tests.replication.brokers import Brokers
from wire.schema import declaration


def held_partition_locks() -> list[CheckedLock]:
    """The partition locks that this thread holds."""
    return [lock for lock in held_here() if lock.rank == Rank.PARTITION]


@pytest.fixture(autouse=True)
def completed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of completed operations; completing under a partition lock is an error."""
    kinds: list[str] = []

    def check(name: str) -> None:
        complete = getattr(DelayedOperation, name)

        def checked(operation: DelayedOperation) -> bool:
            assert not held_partition_locks(), f"{operation} completes under a partition lock"
            won: bool = complete(operation)
            if won:
                kinds.append(type(operation).__name__)
            return won

        monkeypatch.setattr(DelayedOperation, name, checked)

    check("force_complete")
    check("complete_held")
    return kinds


class Rig:
    """A simulated cluster with short ways to use it."""

    def __init__(self, cluster: Cluster, runtime: SimRuntime) -> None:
        self.cluster = cluster
        self.broker = cluster.broker().core
        self.manager = cluster.broker().core.replica_manager
        self.runtime = runtime

    def handle(self, request: Any, version: int | None = None) -> Any:
        known = declaration(type(request))
        assert known.api is not None
        newest = known.last_version if version is None else version
        return self.broker.handle(RequestContext(known.api, newest), request)

    def run_due(self) -> None:
        """Do the work that is due now."""
        scheduler = self.runtime.scheduler
        while scheduler.run_due(self.runtime.clock.monotonic_ms()) == 0:
            pass


@pytest.fixture
def make_rig() -> Iterator[Callable[..., Rig]]:
    """`make_rig(path=None, durability=None, files=None)`: a simulated cluster."""
    made: list[Cluster] = []

    def make(path: str | None = None, *, files: Any = None, **how: Any) -> Rig:
        runtime = sim_runtime(seed=5, files=files)
        cluster = Cluster(path, runtime=runtime, **how)
        made.append(cluster)
        return Rig(cluster, runtime)

    yield make
    for cluster in made:
        cluster.close()
    assert not held_here()


@pytest.fixture
def make_brokers() -> Iterator[Callable[..., Brokers]]:
    """`make_brokers(count=3, **settings)`: several brokers; their committed records are checked."""
    made: list[Brokers] = []

    def make(count: int = 3, **how: Any) -> Brokers:
        made.append(Brokers(count, **how))
        return made[-1]

    yield make
    for brokers in made:
        brokers.check()
        brokers.close()
    assert not held_here()
