"""Acknowledgements of share groups: each check with code and message, and the stored state."""

from __future__ import annotations

from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on
from tests.golden.sharing_requests import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Place,
    Sharer,
    begin_state,
    configure,
    fill,
    read_state,
    read_summary,
)

Kinds = list[tuple[int, int, list[int]]]


def _locked(run: Run, *sizes: int, suffix: str = "t") -> tuple[Sharer, Place, str]:
    """A member that has acquired batches of `sizes`."""
    topic = make_topic(run, suffix)
    group = run.group(suffix)
    begin_state(run, group, topic)
    fill(run, topic, *sizes)
    one = Sharer(run, group)
    for size in sizes:
        one.fetch("acquire", (topic, 0), max_records=size, keep=False)
    return one, (topic, 0), group


@scenario_on("sharing")
def share_acknowledge_forms(run: Run) -> None:
    one, place, _ = _locked(run, 10)
    wrong: list[tuple[str, Kinds]] = [
        ("first above last", [(3, 2, [ACCEPT])]),
        ("no types", [(0, 1, [])]),
        ("two types for three", [(0, 2, [1, 1])]),
        ("four types for three", [(0, 2, [1, 1, 1, 1])]),
        ("type 5", [(0, 1, [5])]),
        ("type 4 without renewal", [(0, 1, [RENEW])]),
        ("type -1", [(0, 1, [-1])]),
        ("second begins in the first", [(0, 4, [1]), (3, 6, [1])]),
        ("second below the first", [(5, 6, [1]), (0, 1, [1])]),
        ("touching", [(0, 4, [1]), (4, 6, [1])]),
        ("beyond the window", [(10, 11, [1])]),
        ("last beyond the window", [(8, 10, [1])]),
        ("negative offsets", [(-2, -1, [1])]),
        ("from below the start", [(-2, 0, [1])]),
        ("the second is bad", [(1, 2, [1]), (20, 21, [1])]),
    ]
    for version in (1, 2):
        for note, batches in wrong:
            one.acknowledge(note, {place: batches}, version=version)
        for note, batches in wrong[:6]:
            one.fetch(
                f"by fetch: {note}", acknowledged={place: batches}, version=version, max_wait_ms=0
            )
    one.acknowledge("all is still there", {place: [(0, 9, [ACCEPT])]})
    one.acknowledge("again", {place: [(0, 9, [ACCEPT])]})


@scenario_on("sharing")
def share_acknowledge_types(run: Run) -> None:
    one, place, group = _locked(run, 10, 5)
    topic = place[0]
    one.acknowledge("one of each", {place: [(0, 3, [ACCEPT, RELEASE, REJECT, GAP])]})
    run.send(read_state(group, topic), 0, "after one of each")
    run.send(read_summary(group, topic), 1, "after one of each")
    one.acknowledge("the released one", {place: [(1, 1, [ACCEPT])]})
    one.acknowledge("an accepted one", {place: [(0, 0, [ACCEPT])]})
    one.acknowledge("an archived one", {place: [(2, 2, [ACCEPT])]})
    one.acknowledge("the rest of the batch", {place: [(4, 9, [ACCEPT])]})
    run.send(read_state(group, topic), 0, "after the rest")
    one.fetch("the released one comes again", max_wait_ms=200)
    one.acknowledge("over two batches", {place: [(1, 1, [ACCEPT]), (10, 12, [RELEASE])]})
    run.send(read_state(group, topic), 0, "the start trails")
    run.send(read_summary(group, topic), 1, "the start trails")
    one.acknowledge("below the start", {place: [(0, 9, [ACCEPT])]})
    one.acknowledge("from below the start", {place: [(8, 13, [1, 1, 1, 1, 1, 1])]})
    one.acknowledge("only what is left", {place: [(13, 14, [ACCEPT])]})
    run.send(read_state(group, topic), 0, "the end")
    run.send(read_summary(group, topic), 1, "the end")


@scenario_on("sharing")
def share_acknowledge_across_batches(run: Run) -> None:
    one, place, group = _locked(run, 3, 3, 3)
    topic = place[0]
    one.acknowledge("parts of all three", {place: [(1, 7, [ACCEPT])]})
    run.send(read_state(group, topic), 0, "parts")
    one.acknowledge("all at once, some are done", {place: [(0, 8, [RELEASE])]})
    one.acknowledge("the ends", {place: [(0, 0, [RELEASE]), (8, 8, [RELEASE])]})
    run.send(read_state(group, topic), 0, "the ends")
    one.fetch("the ends come again", max_wait_ms=200)
    one.acknowledge("accept the ends", {place: [(0, 0, [ACCEPT]), (8, 8, [ACCEPT])]})
    run.send(read_summary(group, topic), 1, "all done")


@scenario_on("sharing")
def share_acknowledge_owners(run: Run) -> None:
    one, place, group = _locked(run, 4)
    two = Sharer(run, group, "two")
    two.fetch("open", place, max_wait_ms=0)
    two.acknowledge("records of another", {place: [(0, 3, [ACCEPT])]})
    two.acknowledge("one record of another", {place: [(1, 1, [ACCEPT])]})
    one.acknowledge("release two", {place: [(0, 1, [RELEASE])]})
    two.fetch("take them", max_wait_ms=1000)
    two.acknowledge("own and others", {place: [(0, 3, [ACCEPT])]})
    one.acknowledge("own and others", {place: [(0, 3, [ACCEPT])]})
    one.acknowledge("own", {place: [(2, 3, [ACCEPT])]})
    two.acknowledge("own", {place: [(0, 1, [ACCEPT])]})
    three = Sharer(run, group, "three")
    three.fetch("open with nothing", max_wait_ms=0)
    three.acknowledge("a partition outside of the session", {place: [(0, 1, [ACCEPT])]})
    three.fetch("it entered the session by a fetch", acknowledged={place: [(0, 1, [ACCEPT])]},
                max_wait_ms=200)  # fmt: skip


@scenario_on("sharing")
def share_acknowledge_not_loaded(run: Run) -> None:
    topic = make_topic(run, partitions=2)
    group = run.group()
    begin_state(run, group, topic, 0, 1)
    fill(run, topic, 2)
    one = Sharer(run, group)
    one.fetch("open with nothing", max_wait_ms=0)
    place, other = (topic, 0), (topic, 1)
    one.acknowledge("never fetched", {place: [(0, 1, [ACCEPT])]})
    one.acknowledge("without batches", {place: []})
    one.acknowledge("without batches, and with", {place: [], other: [(0, 0, [ACCEPT])]})
    one.fetch("load an empty partition", other, max_wait_ms=700)
    one.fetch("load", place)
    one.acknowledge("an empty window", {other: [(0, 0, [ACCEPT])]})
    one.acknowledge("without batches, and with", {place: [(0, 1, [ACCEPT])], other: []})


@scenario_on("sharing")
def share_acknowledge_with_fetch(run: Run) -> None:
    topic = make_topic(run)
    group = run.group()
    begin_state(run, group, topic)
    fill(run, topic, 2, 2, 2)
    place = (topic, 0)
    for version in (1, 2):
        one = Sharer(run, group, f"member-{version}")
        one.fetch("first", place, max_records=1, version=version)
        start = 2 * (version - 1)
        accepted = {place: [(start, start + 1, [ACCEPT])]}
        one.fetch("accept and fetch", acknowledged=accepted, max_records=1, version=version)
        wrong = {place: [(start, start + 1, [ACCEPT])]}
        one.fetch("accept below the start", acknowledged=wrong, max_records=0, version=version)
        later = {place: [(90, 91, [ACCEPT])]}
        one.fetch("accept beyond", acknowledged=later, max_records=0, version=version)
        released = {place: [(start + 2, start + 3, [RELEASE])]}
        one.fetch(
            "release and forget", acknowledged=released, forgotten=[place], max_wait_ms=0,
            version=version,
        )  # fmt: skip
        one.fetch("close", epoch=-1, version=version)


@scenario_on("sharing")
def share_renewal(run: Run) -> None:
    one, place, group = _locked(run, 3)
    configure(run, group, share_record_lock_duration_ms="2000")
    zeros = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    one.acknowledge("renew", {place: [(0, 2, [RENEW])]}, is_renew_ack=True)
    one.acknowledge(
        "renew and accept", {place: [(0, 2, [ACCEPT, RENEW, RENEW])]}, is_renew_ack=True
    )
    one.acknowledge("an accepted record", {place: [(0, 1, [RENEW])]}, is_renew_ack=True)
    one.fetch("renew by fetch", acknowledged={place: [(1, 2, [RENEW])]}, is_renew_ack=True, **zeros)
    run.send(read_state(group, place[0]), 0, "renewals are not stored")
    run.let_pass(1200)
    one.acknowledge("renew again", {place: [(1, 1, [RENEW])]}, is_renew_ack=True)
    run.let_pass(1200)
    one.acknowledge("2 has expired, 1 has not", {place: [(2, 2, [ACCEPT])]})
    one.acknowledge("1 has not", {place: [(1, 1, [ACCEPT])]})
    one.fetch("2 comes again", max_wait_ms=500)
    configure(run, group, share_renew_acknowledge_enable="false")
    one.acknowledge("renewal is off", {place: [(2, 2, [RENEW])]}, is_renew_ack=True)
    one.acknowledge("accept with the flag", {place: [(2, 2, [ACCEPT])]}, is_renew_ack=True)
