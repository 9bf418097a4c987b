"""How the batches of a write are merged into the stored ones."""

from __future__ import annotations

from tests.golden.requests import Topic, make_topic
from tests.golden.run import Run, scenario_on
from tests.golden.share_state_requests import (
    ACKNOWLEDGED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    Batch,
    initialize,
    read,
    summary,
    warm_up,
    write,
)

PLACES = {
    "the same": (10, 19),
    "the begin": (10, 14),
    "the end": (15, 19),
    "inside": (13, 16),
    "around": (5, 24),
    "over the begin": (5, 14),
    "over the end": (15, 24),
    "touching before": (5, 9),
    "touching after": (20, 24),
    "apart before": (3, 7),
    "apart after": (22, 24),
}
RANKS = {
    "the same": (AVAILABLE, 2),
    "a higher count": (AVAILABLE, 3),
    "a lower count": (ACKNOWLEDGED, 1),
    "a higher state": (ARCHIVED, 2),
}


@scenario_on("share state")
def share_state_batches_that_overlap(run: Run) -> None:
    topic = make_topic(run)
    warm_up(run, topic)
    for place, (first, last) in PLACES.items():
        for rank, (state, count) in RANKS.items():
            group = run.group(f"{place}-{rank}")
            _merged(run, topic, group, [(10, 19, AVAILABLE, 2)], [(first, last, state, count)])


@scenario_on("share state")
def share_state_ranks(run: Run) -> None:
    topic = make_topic(run)
    warm_up(run, topic)
    states = (AVAILABLE, 1, ACKNOWLEDGED, ARCHIVING, ARCHIVED)
    for before in states:
        for state in states:
            group = run.group(f"{before}-{state}")
            _merged(run, topic, group, [(0, 9, before, 1)], [(4, 5, state, 1)])


@scenario_on("share state")
def share_state_many_batches(run: Run) -> None:
    topic = make_topic(run)
    warm_up(run, topic)
    walks: dict[str, list[list[Batch]]] = {
        "nothing": [[], []],
        "over gaps": [[(0, 4, 0, 1), (10, 14, 0, 1), (20, 24, 0, 1)], [(3, 21, 2, 1)]],
        "over different ones": [
            [(0, 4, 0, 1), (5, 9, 2, 1), (10, 14, 0, 2), (15, 19, 4, 1)],
            [(0, 19, 2, 1)],
        ],
        "over different ones with a higher count": [
            [(0, 4, 0, 1), (5, 9, 2, 1), (10, 14, 0, 2), (15, 19, 4, 1)],
            [(2, 17, 0, 2)],
        ],
        "several at once": [
            [(0, 9, 0, 1), (10, 19, 0, 1)],
            [(0, 1, 2, 1), (4, 5, 2, 1), (9, 10, 4, 1), (19, 20, 0, 2)],
        ],
        "joined": [[(0, 4, 2, 1)], [(5, 9, 2, 1)], [(10, 14, 2, 1)], [(20, 24, 2, 1)]],
        "a gap is filled": [[(0, 4, 2, 1)], [(10, 14, 2, 1)], [(5, 9, 2, 1)]],
        "not joined": [[(0, 4, 2, 1)], [(5, 9, 2, 2)], [(10, 14, 4, 2)]],
        "in one write": [[(0, 9, 0, 1), (5, 14, 2, 1)]],
        "in one write, touching": [[(0, 4, 0, 1), (5, 9, 0, 1)]],
        "in one write, the same twice": [[(0, 4, 0, 1), (0, 4, 0, 1)]],
        "in one write, out of order": [[(10, 14, 0, 1), (0, 4, 0, 1)]],
        "in one write, out of order and overlapping": [[(10, 14, 0, 1), (5, 11, 0, 2)]],
        "single offsets": [[(n, n, n % 2 * 2, 1) for n in range(8)], [(3, 4, 4, 1)]],
        "one of each": [
            [(0, 30, 0, 1)],
            [(3, 5, 0, 2)],
            [(10, 12, 2, 1)],
            [(11, 20, 4, 1)],
            [(4, 11, 2, 2)],
            [(0, 30, 0, 2)],
        ],
        "counts that are large": [[(0, 9, 0, 32767)], [(5, 14, 4, 32766)]],
        "states that nobody knows": [[(0, 9, 9, 1)], [(5, 14, -1, 2)], [(12, 20, 127, 2)]],
        "offsets that are large": [[(2**62, 2**62 + 9, 0, 1)], [(2**62 + 5, 2**63 - 2, 2, 1)]],
    }
    for name, writes in walks.items():
        group = run.group(name)
        run.setup(initialize(group, topic), 0)
        for number, batches in enumerate(writes):
            run.send(write(group, topic, *batches), 1, f"{name}, write {number}")
            run.send(read(group, topic), 0, f"{name}, after write {number}")


@scenario_on("share state")
def share_state_below_the_start(run: Run) -> None:
    topic = make_topic(run)
    warm_up(run, topic)
    stored: list[Batch] = [(0, 4, 2, 1), (5, 9, 0, 1), (15, 19, 0, 2)]
    for start in (-1, 0, 2, 5, 7, 10, 12, 15, 19, 20, 25):
        for batches in ([], [(8, 17, 2, 1)]):
            group = run.group(f"{start}-{len(batches)}")
            run.setup(initialize(group, topic), 0)
            run.setup(write(group, topic, *stored), 1)
            note = f"start {start}, {batches}"
            run.send(write(group, topic, *batches, start=start, complete=1), 1, note)
            run.send(read(group, topic), 0, note)
            run.send(write(group, topic, (1, 16, 0, 3)), 1, f"{note}, then from below")
            run.send(read(group, topic), 0, f"{note}, then from below")
    group = run.group("undecided")
    run.setup(initialize(group, topic, start=-1), 0)
    run.send(write(group, topic, (3, 5, 0, 1)), 1, "the start is not decided")
    run.send(read(group, topic), 0, "the start is not decided")
    run.send(write(group, topic, start=4), 1, "the start is decided")
    run.send(read(group, topic), 0, "the start is decided")
    run.send(summary(group, topic), 1, "the start is decided")


@scenario_on("share state")
def share_state_odd_batches(run: Run) -> None:
    topic = make_topic(run)
    warm_up(run, topic)
    odd: tuple[tuple[str, int, list[Batch]], ...] = (
        ("below zero", 0, [(-5, -3, 0, 1)]),
        ("from below zero", 0, [(-5, 3, 0, 1)]),
        ("from below zero, no start", -1, [(-5, 3, 0, 1)]),
        ("below zero, no start", -1, [(-5, -3, 0, 1)]),
        ("count below zero", 0, [(0, 3, 0, -1)]),
        ("count zero", 0, [(0, 3, 0, 0)]),
    )
    for note, start, batches in odd:
        group = run.group(note)
        run.setup(initialize(group, topic, start=start), 0)
        run.send(write(group, topic, *batches), 1, note)
        run.send(read(group, topic), 0, note)
        run.send(write(group, topic, (2, 5, 2, 1)), 1, f"{note}, then another")
        run.send(read(group, topic), 0, f"{note}, then another")


def _merged(run: Run, topic: Topic, group: str, stored: list[Batch], written: list[Batch]) -> None:
    """Record the state after two writes."""
    run.setup(initialize(group, topic), 0)
    run.setup(write(group, topic, *stored), 1)
    run.setup(write(group, topic, *written), 1)
    run.send(read(group, topic), 0, f"{group.partition(':')[2]}: {written} over {stored}")
