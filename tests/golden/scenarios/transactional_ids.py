"""InitProducerId and EndTxn: owners of a transactional id, and the ends of its transactions."""

from __future__ import annotations

from collections.abc import Callable

from tests.golden.requests import Topic, make_topic
from tests.golden.run import Run, scenario_on
from tests.golden.transaction_requests import (
    Producer,
    add,
    began,
    end,
    ended,
    init,
    owned,
    register,
    settle,
    transaction,
    warm_up_transactions,
)
from wire.schemas.describe_transactions import DescribeTransactionsRequest
from wire.schemas.list_transactions import ListTransactionsRequest

V = 5


def _show(run: Run, transactional_id: str, note: str = "as described") -> None:
    settle(run, transactional_id)
    run.send(DescribeTransactionsRequest(transactional_ids=[transactional_id]), 0, note)


@scenario_on("transactions")
def init_transactional_ids(run: Run) -> None:
    warm_up_transactions(run)
    for v in range(6):
        name = run.group(f"v{v}")
        first = run.send(init(name), v, "the first time")
        producer = first.producer_id, first.producer_epoch
        run.send(init(name), v, "again")
        run.send(init(name, timeout_ms=0), v, "no time-out")
        run.send(init(name, timeout_ms=-1), v, "a negative time-out")
        run.send(init(name, timeout_ms=900_001), v, "a time-out above the largest")
        run.send(init(name, timeout_ms=900_000), v, "the largest time-out")
        run.send(init(""), v, "an empty id")
        if v >= 3:
            run.send(init(name, producer), v, "an epoch that has passed")
            run.send(init(name, (producer[0], 2)), v, "the present epoch")
            run.send(init(name, (producer[0], 2)), v, "the same once more")
            run.send(init(name, (producer[0], 1)), v, "an older epoch")
            run.send(init(name, (producer[0], 9)), v, "an epoch to come")
            run.send(init(name, (producer[0] + 7000, 3)), v, "another producer id")
            run.send(init(name, (producer[0], -1)), v, "without an epoch")
            run.send(init(name, (-1, 3)), v, "without a producer id")
            run.send(init(run.group(f"new{v}"), (77_000, 5)), v, "a new id, with a producer")
            run.send(init(None, producer), v, "no transactional id, with a producer")
        _show(run, name)


@scenario_on("transactions")
def init_over_an_open_transaction(run: Run) -> None:
    warm_up_transactions(run)
    topic = make_topic(run)
    for v in (0, 2, 3, 5):
        name = run.group(f"v{v}")
        old = began(run, name, (topic, 0))
        _show(run, name, "open")
        run.send(init(name), v, "another instance")
        settle(run, name)
        _show(run, name, "aborted")
        run.send(init(name), v, "once it is aborted")
        run.send(add(name, old, (topic, 0)), 3, "the old one adds")
        run.send(end(name, old), 5, "the old one commits")
        run.send(end(name, old), 3, "the old one commits, version 3")
        run.send(end(name, old), 1, "the old one commits, version 1")
    name = run.group("own")
    own = began(run, name, (topic, 0))
    run.send(init(name, own), V, "its own instance")
    settle(run, name)
    run.send(init(name, own), V, "once it is aborted")
    run.send(init(name, own), V, "once more")
    run.send(init(name, (own[0], own[1] + 5)), V, "with an epoch to come")
    name = run.group("added by a broker")
    own = began(run, name, (topic, 0), version=5)
    run.send(init(name), V, "another instance")
    settle(run, name)
    run.send(init(name), V, "once it is aborted")


def _empty(run: Run, name: str, topic: Topic) -> Producer:
    return owned(run, name)


def _open(run: Run, name: str, topic: Topic) -> Producer:
    return began(run, name, (topic, 0))


def _committed(run: Run, name: str, topic: Topic) -> Producer:
    return ended(run, name, began(run, name, (topic, 0)))


def _aborted(run: Run, name: str, topic: Topic) -> Producer:
    return ended(run, name, began(run, name, (topic, 0)), commit=False)


def _committed_before_v5(run: Run, name: str, topic: Topic) -> Producer:
    return ended(run, name, began(run, name, (topic, 0)), version=4)


def _aborted_before_v5(run: Run, name: str, topic: Topic) -> Producer:
    return ended(run, name, began(run, name, (topic, 0)), commit=False, version=4)


_STATES: dict[str, Callable[[Run, str, Topic], Producer]] = {
    "empty": _empty,
    "open": _open,
    "committed": _committed,
    "aborted": _aborted,
    "committed by v4": _committed_before_v5,
    "aborted by v4": _aborted_before_v5,
}


@scenario_on("transactions")
def end_in_each_state(run: Run) -> None:
    """Every state, commit and abort, with the present epoch, the previous and the next."""
    warm_up_transactions(run)
    topic = make_topic(run)
    for v in (1, 4, 5):
        for state, reach in _STATES.items():
            for commit in (True, False):
                for step in (-1, 0, 1):
                    name = run.group(f"v{v} {state} {commit} e{step + 1}")
                    pid, epoch = reach(run, name, topic)
                    if epoch + step < 0:
                        continue
                    what = f"{state}: {'commit' if commit else 'abort'}, epoch {step:+}"
                    run.send(end(name, (pid, epoch + step), commit=commit), v, what)
                    _show(run, name, what)


@scenario_on("transactions")
def end_versions(run: Run) -> None:
    warm_up_transactions(run)
    topic = make_topic(run, partitions=2)
    for v in range(6):
        name = run.group(f"v{v}")
        producer = began(run, name, (topic, 0), (topic, 1))
        run.send(end("", producer), v, "an empty id")
        run.send(end(run.group("nobody"), producer), v, "an unknown id")
        run.send(end(name, (producer[0] + 7000, 0)), v, "another producer id")
        run.send(end(name, (producer[0], -1)), v, "epoch -1")
        run.send(end(name, producer), v, "commit")
        settle(run, name)
        run.send(end(name, producer), v, "commit again")
        run.send(end(name, producer, commit=False), v, "and abort")
        _show(run, name)


@scenario_on("transactions")
def end_without_partitions(run: Run) -> None:
    warm_up_transactions(run)
    for v in (0, 2, 4, 5):
        name = run.group(f"v{v}")
        producer = owned(run, name)
        run.send(end(name, producer), v, "commit nothing")
        answer = run.send(end(name, producer, commit=False), v, "abort nothing")
        settle(run, name)
        run.send(end(name, producer, commit=False), v, "abort nothing again")
        if v >= 5:
            following = answer.producer_id, answer.producer_epoch
            settle(run, name)
            run.send(end(name, following, commit=False), v, "and with the new epoch")
            settle(run, name)
            run.send(end(name, following), v, "and commit")
        _show(run, name)


@scenario_on("transactions")
def transactions_that_take_too_long(run: Run) -> None:
    warm_up_transactions(run)
    topic = make_topic(run)
    for number, v in enumerate((3, 5)):
        name = run.group(f"late{number}")
        producer = owned(run, name, timeout_ms=300)
        if v == 3:
            run.setup(add(name, producer, (topic, 0)), 3)
        else:
            run.setup(register(transaction(name, producer, (topic, 0))), 5)
        request = DescribeTransactionsRequest(transactional_ids=[name])
        run.until(
            lambda answer: answer.transaction_states[0].transaction_state == "CompleteAbort",
            request,
            0,
            "aborted by the coordinator",
        )
        run.send(add(name, producer, (topic, 0)), 3, "add with the old epoch")
        run.send(end(name, producer), 3, "commit, version 3")
        run.send(end(name, producer), 5, "commit")
        run.send(end(name, producer, commit=False), 5, "abort")
        run.send(init(name, producer), V, "go on")
        _show(run, name)


@scenario_on("transactions")
def views_of_transactions(run: Run) -> None:
    warm_up_transactions(run)
    topic = make_topic(run, partitions=3)
    other = make_topic(run, "other")
    names = {state: run.group(state.replace(" ", "-")) for state in _STATES}
    for state, reach in _STATES.items():
        reach(run, names[state], topic)
    several = run.group("several")
    began(run, several, (topic, 2), (other, 0), (topic, 1))
    asked = [*names.values(), several, run.group("nobody"), ""]
    for one in asked:
        run.send(DescribeTransactionsRequest(transactional_ids=[one]), 0, f"describe {one!r}")
    run.send(DescribeTransactionsRequest(transactional_ids=asked), 0, "describe all")
    run.send(DescribeTransactionsRequest(transactional_ids=[]), 0, "describe none")
    filters: list[list[str]] = [
        [],
        ["Empty"],
        ["Ongoing", "CompleteCommit"],
        ["ongoing"],
        ["Nonsense"],
        ["Nonsense", "Empty"],
        ["Dead"],
        ["PrepareEpochFence"],
        [""],
    ]
    for v in range(3):
        for wanted in filters:
            request = ListTransactionsRequest(state_filters=wanted)
            run.send(request, v, f"list {wanted}")
        run.send(ListTransactionsRequest(producer_id_filters=[123_456]), v, "of nobody")
    for duration in (-1, 0, 1, 3_600_000, -7):
        request = ListTransactionsRequest(duration_filter=duration)
        run.let_pass(20)
        run.send(request, 1, f"longer than {duration}")
    for pattern in (None, "", ".*open", "open", ".*(empty|open)", "[", ".*-a.*", "(?i).*OPEN"):
        request = ListTransactionsRequest(transactional_id_pattern=pattern)
        run.send(request, 2, f"pattern {pattern!r}")
