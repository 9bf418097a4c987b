"""Fetch sessions (KIP-227): begin, increment, forget, close, and every way to be wrong."""

from __future__ import annotations

from tests.golden.batches import simple
from tests.golden.requests import fetch, make_topic, produce
from tests.golden.run import Run, scenario

VERSIONS = (7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)
MISSING_ID = bytes(range(1, 17))


@scenario
def session_life(run: Run) -> None:
    for version in VERSIONS:
        topic = make_topic(run, f"v{version}", partitions=3)
        run.setup(produce(topic, 9, simple(b"a")), 9)
        begun = run.send(
            fetch(topic, version, session_id=0, session_epoch=0, more=[(topic, 1, 0)]),
            version, "begin with two partitions",
        )  # fmt: skip
        session = begun.session_id
        run.send(
            fetch(None, version, session_id=session, session_epoch=1), version, "nothing changed"
        )
        run.send(
            fetch(topic, version, 1, session_id=session, session_epoch=2),
            version, "partition 0 moves on",
        )  # fmt: skip
        run.setup(produce(topic, 9, simple(b"b"), partition=1), 9)
        run.send(
            fetch(None, version, session_id=session, session_epoch=3),
            version, "partition 1 got a record",
        )  # fmt: skip
        run.send(
            fetch(topic, version, partition=2, session_id=session, session_epoch=4),
            version, "add partition 2",
        )  # fmt: skip
        run.send(
            fetch(None, version, session_id=session, session_epoch=5, forgotten=[(topic, [0])]),
            version, "forget partition 0",
        )  # fmt: skip
        run.send(fetch(None, version, session_id=session, session_epoch=9), version, "wrong epoch")
        run.send(
            fetch(None, version, session_id=session, session_epoch=6,
                  forgotten=[(topic, [1, 2])]),
            version, "forget the rest",
        )  # fmt: skip
        run.send(
            fetch(None, version, session_id=session, session_epoch=7), version, "after its end"
        )


@scenario
def session_faults(run: Run) -> None:
    topic = make_topic(run)
    unknown = (run.topic("unknown"), MISSING_ID)
    for version in (7, 11, 12, 13, 18):
        wrong = fetch(topic, version, session_id=123456, session_epoch=1)
        run.send(wrong, version, "unknown session")
        run.send(fetch(topic, version, session_id=0, session_epoch=5), version, "id 0, epoch 5")
        final = fetch(topic, version, session_id=0, session_epoch=-1)
        run.send(final, version, "no session asked for")
        begun = run.send(
            fetch(topic, version, session_id=0, session_epoch=0, more=[(unknown, 0, 0)]),
            version, "begin with an unknown topic",
        )  # fmt: skip
        run.send(
            fetch(None, version, session_id=begun.session_id, session_epoch=1),
            version, "the error comes again",
        )  # fmt: skip
        run.send(
            fetch(topic, version, session_id=begun.session_id, session_epoch=-1),
            version, "close by epoch -1",
        )  # fmt: skip
        run.send(
            fetch(None, version, session_id=begun.session_id, session_epoch=2),
            version, "after the close",
        )  # fmt: skip
        empty = fetch(None, version, session_id=0, session_epoch=0)
        run.send(empty, version, "begin with nothing")


@scenario
def session_restarts(run: Run) -> None:
    topic = make_topic(run)
    for version in (7, 12, 13, 18):
        begun = run.setup(fetch(topic, version, session_id=0, session_epoch=0), version)
        again = fetch(topic, version, session_id=begun.session_id, session_epoch=0)
        run.send(again, version, "begin again, giving up the old")
        run.send(
            fetch(None, version, session_id=begun.session_id, session_epoch=1),
            version, "the old one",
        )  # fmt: skip


@scenario
def session_mixes_names_and_ids(run: Run) -> None:
    topic = make_topic(run)
    by_name = run.setup(fetch(topic, 12, session_id=0, session_epoch=0), 12)
    run.send(fetch(topic, 13, session_id=by_name.session_id, session_epoch=1), 13, "ids into names")
    by_id = run.setup(fetch(topic, 13, session_id=0, session_epoch=0), 13)
    run.send(fetch(topic, 12, session_id=by_id.session_id, session_epoch=1), 12, "names into ids")
