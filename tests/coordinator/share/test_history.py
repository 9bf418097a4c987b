"""Any history of requests, pauses and restarts leaves the states that a plain model has."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from embedlog.testing import sim_runtime
from tests.coordinator.share.world import World

GROUPS = ("a", "b", "c")
CONFIG = {
    "share.coordinator.snapshot.update.records.per.snapshot": 2,
    "share.coordinator.state.topic.prune.interval.ms": 1000,
    "share.coordinator.cold.partition.snapshot.interval.ms": 3000,
}
OFFSETS = st.integers(0, 20)

batches = st.builds(
    lambda first, size, state, count: (first, first + size, state, count),
    OFFSETS, st.integers(0, 6), st.sampled_from((0, 2, 4)), st.integers(1, 3),
)  # fmt: skip
groups = st.sampled_from(GROUPS)
epochs = st.integers(0, 3)
steps = st.one_of(
    st.tuples(st.just("initialize"), groups, epochs, st.integers(-1, 10)),
    st.tuples(st.just("read"), groups, epochs),
    st.tuples(
        st.just("write"), groups, epochs, epochs, st.integers(-1, 20), st.integers(-1, 9),
        st.lists(batches, max_size=3),
    ),
    st.tuples(st.just("write"), groups, st.just(3), st.just(3), st.integers(-1, 20),
              st.integers(-1, 9), st.lists(batches, max_size=3)),
    st.tuples(st.just("delete"), groups),
    st.tuples(st.just("pause"), st.integers(1, 5000)),
    st.tuples(st.just("restart")),
)  # fmt: skip


class Modelled:
    """One state: the rank (count, state) of each offset."""

    def __init__(self, state_epoch: int, start: int) -> None:
        self.state_epoch = state_epoch
        self.leader_epoch = 0
        self.start = start
        self.complete = -1 if start == -1 else 0
        self.ranks: dict[int, tuple[int, int]] = {}


class Model:
    """The rules of the fact sheet, without records."""

    def __init__(self) -> None:
        self.states: dict[str, Modelled] = {}
        self.fenced: dict[str, int] = {}
        """Group -> the highest leader epoch seen. A restart may forget it, a snapshot later."""

    def initialize(self, group: str, epoch: int, start: int) -> int:
        present = self.states.get(group)
        if present is not None and epoch < present.state_epoch:
            return 124
        self.states[group] = Modelled(epoch, start)
        self.fenced.setdefault(group, 0)
        return 0

    def read(self, group: str, epoch: int) -> int:
        if group not in self.states:
            return 42
        if epoch < self.fenced[group]:
            return 74
        if epoch > self.fenced[group]:
            self.states[group].leader_epoch = self.fenced[group] = epoch
        return 0

    def write(
        self, group: str, state_epoch: int, leader_epoch: int, start: int, complete: int, new: Any
    ) -> int:
        present = self.states.get(group)
        if present is None:
            return 42
        if leader_epoch < self.fenced[group]:
            return 74
        if state_epoch < present.state_epoch:
            return 124
        if start > present.start:
            present.start, present.complete = start, complete
        elif start == present.start:
            present.complete = max(complete, present.complete)
        for first, last, state, count in new:
            for offset in range(first, last + 1):
                rank = count, state
                present.ranks[offset] = max(present.ranks.get(offset, rank), rank)
        if present.start != -1:
            kept = {n: rank for n, rank in present.ranks.items() if n >= present.start}
            present.ranks = kept
        return 0

    def delete(self, group: str) -> int:
        self.states.pop(group, None)
        self.fenced.pop(group, None)
        return 0


def perform(world: World, step: Any) -> int:
    """Do one step of a history; return the error code."""
    name, *values = step
    if name == "initialize":
        group, epoch, start = values
        return world.initialize(group, state_epoch=epoch, start=start)
    if name == "read":
        return int(world.read(values[0], leader_epoch=values[1]).error_code)
    if name == "write":
        group, state_epoch, leader_epoch, start, complete, new = values
        return world.write(
            *new, group=group, state_epoch=state_epoch, leader_epoch=leader_epoch, start=start,
            complete=complete,
        )  # fmt: skip
    return world.delete(values[0])


def check(world: World, model: Model) -> None:
    """Compare the states with the model's."""
    states = {key[0]: each for shard in world.shards() for key, each in shard.states.items()}
    assert states.keys() == model.states.keys()
    for group, each in states.items():
        wanted = model.states[group]
        row = world.summary(group)
        numbers = row.state_epoch, row.leader_epoch, row.start_offset, row.delivery_complete_count
        assert numbers == (wanted.state_epoch, wanted.leader_epoch, wanted.start, wanted.complete)
        ranks = {
            offset: (count, state)
            for first, last, state, count in each.batches
            for offset in range(first, last + 1)
        }
        assert ranks == wanted.ranks


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=40))
def test_states_are_those_of_the_model(history: list[Any]) -> None:
    model = Model()
    world = World("data", sim_runtime(seed=1), config=CONFIG, durability="os")
    try:
        for step in history:
            name, *values = step
            if name == "pause":
                world.let_pass(values[0])
            elif name == "restart":
                world.cluster.close()
                again = sim_runtime(files=world.runtime.files)
                world = World("data", again, config=CONFIG, durability="os")
                world.load()
                found = {
                    key[0]: state.highest_leader_epoch
                    for shard in world.shards()
                    for key, state in shard.states.items()
                }
                for group, epoch in found.items():
                    assert model.states[group].leader_epoch <= epoch <= model.fenced[group]
                model.fenced = found
            else:
                expected = getattr(model, name)(*values)
                assert perform(world, step) == expected, step
            check(world, model)
    finally:
        world.cluster.close()
