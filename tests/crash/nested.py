"""Calls inside calls: a handler makes a public call at any opcode of another call of its thread.

A trace function stands for the signal handler, finalizer or log handler. The nested call either is
refused with `NestedCall`, or happens as a whole, before or after the outer call. Each acknowledged
record is in the log at its offset, nothing else fails, and the directory is sound afterwards.

The same calls are made near the recursion limit, where any function may raise RecursionError.

A nested `close` returns at once and never fails: the close happens at the end of the outer call,
also if the handler ends the outer call with SystemExit.
"""

from __future__ import annotations

import inspect
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import embedlog
from embedlog.errors import ClosedError, EmbedlogError, IllegalState, NestedCall
from embedlog.runtime import real_runtime
from embedlog.storage.verification.directory import DirectoryCheck
from tests.crash.interrupts import _memory
from tests.crash.opcodes import Countdown
from tests.crash.report import Options, Report
from tests.support.sizes import size

CI_COUNT = size(1_200, full=1_000_000)
"""Most nested calls."""
SOAK_COUNT = 1_000_000

_ROOTS = ("/embedlog/", "/wire/")
_KEY = embedlog.TopicPartition("events", 0)
_ROOM_MIN, _ROOM_MAX = 2, 90
"""Frames that are left below the calls near the recursion limit."""
_CLOSE_COST = 15
"""The time of a nested close, which needs a cluster of its own, relative to another call."""


class House:
    """A cluster with one client of each kind, and the offsets of their records."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.cluster = embedlog.open(f"{directory}/data", durability="os")
        self.cluster.create_topic("events", 1)
        self.producer = self.cluster.producer()
        self.transactional = self.cluster.producer(transactional_id="nested")
        self.transactional.init_transactions()
        self.consumer = self.cluster.consumer(
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=1,
        )
        self.consumer.subscribe(["events"])
        self.admin = self.cluster.admin()
        self.acknowledged: dict[int, bytes] = {}
        self.doubled: list[int] = []
        self.waiting: list[tuple[bytes, embedlog.DeliveryFuture]] = []
        self.number = 0
        self.append()
        while not self.consumer.assignment():
            self.consumer.poll(10)

    # Calls; each may be the outer or the nested one

    def append(self) -> None:
        value = self._value()
        self._note(self.producer.append("events", value).offset, value)

    def send(self) -> None:
        value = self._value()
        self.waiting.append((value, self.producer.send("events", value)))

    def result(self) -> None:
        if self.waiting:
            self.waiting[-1][1].result(10)

    def flush(self) -> None:
        self.producer.flush(10)

    def poll(self) -> None:
        self.consumer.poll(5)

    def commit(self) -> None:
        self.consumer.commit({_KEY: 1})

    def commit_async(self) -> None:
        self.consumer.commit_async({_KEY: 1})

    def seek(self) -> None:
        self.consumer.seek(_KEY, 0)

    def subscribe(self) -> None:
        self.consumer.subscribe(["events"])

    def create_topics(self) -> None:
        self.number += 1
        self.admin.create_topics([embedlog.NewTopic(f"topic-{self.number}", 1)]).check()

    def begin(self) -> None:
        self.transactional.begin_transaction()

    def commit_transaction(self) -> None:
        self.transactional.commit_transaction()

    def abort_transaction(self) -> None:
        self.transactional.abort_transaction()

    def maintain(self) -> None:
        self.cluster.maintain()

    def health(self) -> None:
        assert self.cluster.health() == []

    def listen(self) -> None:
        self.cluster.listen("127.0.0.1", 0).close()

    # Preparations of outer calls

    def queue_one(self) -> None:
        self.send()

    def begin_with_one(self) -> None:
        with suppress(IllegalState):
            self.transactional.begin_transaction()
        self.transactional.send("events", b"")

    def end_transaction(self) -> None:
        """End the transaction, if there is one, in the way that its state allows."""
        for end in (self.transactional.commit_transaction, self.transactional.abort_transaction):
            with suppress(EmbedlogError):
                end()

    def _value(self) -> bytes:
        self.number += 1
        return b"%d" % self.number

    def _note(self, offset: int, value: bytes) -> None:
        if offset in self.acknowledged:
            self.doubled.append(offset)
        self.acknowledged[offset] = value

    # Checks

    def problem(self) -> str:
        """Return the first defect of the open cluster; "" without one."""
        for value, future in self.waiting:
            error = future.exception(10)
            if error is None:
                self._note(future.result().offset, value)
            elif "RecursionError" not in str(error):
                return f"the record {value!r} failed: {error!r}"
        self.waiting.clear()
        if self.doubled:
            return f"offsets were acknowledged twice: {self.doubled}"
        return _missing(self.cluster, self.acknowledged)

    def close(self) -> str:
        """Close everything; return the first defect of the directory."""
        for client in (self.consumer, self.producer, self.transactional, self.admin):
            client.close()
        self.cluster.close()
        return self.problem_on_disk()

    def problem_on_disk(self) -> str:
        path = f"{self.directory}/data"
        check = DirectoryCheck(real_runtime().files, path, lambda _: None, lambda _: True)
        if damage := list(check.findings()):
            return f"verify says {damage}"
        with embedlog.open(path, durability="os") as cluster:
            return _missing(cluster, self.acknowledged)


def _missing(cluster: embedlog.Cluster, acknowledged: dict[int, bytes]) -> str:
    found = {}
    with cluster.consumer() as consumer:
        consumer.assign([_KEY])
        consumer.seek_to_beginning()
        (end,) = consumer.end_offsets([_KEY]).values()
        while consumer.position(_KEY) < end:
            found.update((record.offset, record.value) for record in consumer.poll(1000))
    wrong = {
        at: (value, found.get(at)) for at, value in acknowledged.items() if found.get(at) != value
    }
    return f"acknowledged records, each beside the found record: {wrong}" if wrong else ""


Call = Callable[[House], None]

OUTER: dict[str, tuple[Call, Call | None, Call | None]] = {
    "append": (House.append, None, None),
    "send": (House.send, None, None),
    "send of a second": (House.send, House.queue_one, None),
    "result": (House.result, House.queue_one, None),
    "flush": (House.flush, House.queue_one, None),
    "poll": (House.poll, House.append, None),
    "commit": (House.commit, None, None),
    "commit_async": (House.commit_async, None, None),
    "seek": (House.seek, None, None),
    "subscribe": (House.subscribe, None, None),
    "create_topics": (House.create_topics, None, None),
    "begin_transaction": (House.begin, House.end_transaction, House.end_transaction),
    "commit_transaction": (House.commit_transaction, House.begin_with_one, House.end_transaction),
    "abort_transaction": (House.abort_transaction, House.begin_with_one, House.end_transaction),
    "maintain": (House.maintain, House.append, None),
    "health": (House.health, None, None),
    "listen": (House.listen, None, None),
}
"""Name -> the call, and the calls before and after it, which nothing interrupts."""

NESTED: dict[str, Call] = {
    "append": House.append,
    "send": House.send,
    "flush": House.flush,
    "result": House.result,
    "poll": House.poll,
    "commit": House.commit,
    "commit_async": House.commit_async,
    "seek": House.seek,
    "subscribe": House.subscribe,
    "create_topics": House.create_topics,
    "begin_transaction": House.begin,
    "commit_transaction": House.commit_transaction,
    "abort_transaction": House.abort_transaction,
    "maintain": House.maintain,
    "health": House.health,
    "listen": House.listen,
}

CLOSES: dict[str, Callable[[House], Any]] = {
    "consumer": lambda house: house.consumer,
    "producer": lambda house: house.producer,
    "transactional": lambda house: house.transactional,
    "admin": lambda house: house.admin,
    "cluster": lambda house: house.cluster,
}


def run(options: Options) -> Report:
    """Make nested calls of each kind in each outer call, at opcodes chosen by chance."""
    report = Report("nested", options)
    chance = random.Random(options.seed)
    share = options.count // len(OUTER)
    for name in OUTER:
        nested_in(report, name, share, chance)
        _closes_in(report, name, share // _CLOSE_COST, chance)
        _near_the_limit(report, name, share)
    return report


def _house() -> House:
    return House(tempfile.mkdtemp(prefix="nested-", dir=_memory()))


def nested_in(report: Report, name: str, share: int, chance: random.Random) -> None:
    house = _house()
    kinds = _endless(list(NESTED))
    for opcode in _places(house, name, share, chance):
        kind = next(kinds)
        outcome: list[str] = []

        def nested(kind: str = kind, outcome: list[str] = outcome) -> None:
            try:
                NESTED[kind](house)
                outcome.append("made")
            except NestedCall:
                outcome.append("refused")
            except IllegalState as error:  # outside of the outer call, of another transaction
                outcome.append("made" if "transaction" in kind else repr(error))
            except BaseException as error:
                outcome.append(repr(error))

        where = f"{kind} in {name}, opcode {opcode}"
        problem = _outer(house, name, opcode, nested)
        how = outcome[0] if outcome else "not reached"
        report.add(how if how in {"made", "refused", "not reached"} else "failed")
        if how not in {"made", "refused", "not reached"}:
            problem = f"the nested call raised {how}"
        if problem:
            report.fail(f"{where}: {problem}")
    if problem := house.problem() or house.close():
        report.fail(f"in {name}: {problem}")
    shutil.rmtree(house.directory)


def _closes_in(report: Report, name: str, share: int, chance: random.Random) -> None:
    kinds = _endless(list(CLOSES))
    for exits in (False, True):
        house = _house()
        places = _places(house, name, share, chance, interrupts_only=exits)
        house.close()
        shutil.rmtree(house.directory)
        for opcode in places:
            kind = next(kinds)
            house = _house()
            where = f"close of {kind}{' and exit' if exits else ''} in {name}, opcode {opcode}"
            outcome = _closed_in(house, name, opcode, kind, exits=exits)
            report.add(outcome or "closes")
            if outcome not in {"", "not reached"}:
                report.fail(f"{where}: {outcome}")
            shutil.rmtree(house.directory)


def _closed_in(house: House, name: str, opcode: int, kind: str, *, exits: bool) -> str:
    """Close a client in an outer call; return the first defect afterwards."""
    outcome: list[str] = []

    def close() -> None:
        try:
            CLOSES[kind](house).close()
            outcome.append("")
        except BaseException as error:
            outcome.append(f"the close raised {error!r}")
        if exits:
            raise SystemExit

    with suppress(SystemExit):
        if problem := _outer(house, name, opcode, close, exits=exits, is_closed=True):
            outcome.append(problem)
    if outcome == [""] and not _is_closed(CLOSES[kind](house)):
        outcome.append("it is not closed after the outer call")
    for each in (house.consumer, house.producer, house.transactional, house.admin):
        each.close()
    house.cluster.close()
    if not outcome:
        return "not reached"
    return outcome[-1] or house.problem_on_disk()


def _near_the_limit(report: Report, name: str, share: int) -> None:
    """Make an outer call with less and less room for frames below it, `share` times at most."""
    house = _house()
    call, before, after = OUTER[name]
    spare = sys.getrecursionlimit() - len(inspect.stack())
    for _ in range(2):  # imports need more room
        _outer(house, name, 1 << 60, lambda: None)
    for room in range(_ROOM_MAX, _ROOM_MIN, -max(1, (_ROOM_MAX - _ROOM_MIN) // share)):
        if before is not None:
            before(house)
        try:
            _deep(spare - room, lambda: call(house))
            report.add("calls in little room")
        except RecursionError:
            report.add("recursion errors")
        except (EmbedlogError, AssertionError) as error:
            if "RecursionError" not in str(error):
                report.fail(f"{name} with room for {room} calls raised {error!r}")
        if after is not None:
            after(house)
    if problem := house.problem() or house.close():
        report.fail(f"{name} near the recursion limit: {problem}")
    shutil.rmtree(house.directory)


def _deep(depth: int, call: Callable[[], None]) -> None:
    """Make a call below `depth` frames."""
    if depth > 0:
        _deep(depth - 1, call)
    else:
        call()


def _is_closed(client: Any) -> bool:
    return "closed" in repr(client)


def _outer(
    house: House,
    name: str,
    opcode: int,
    act: Callable[[], None],
    *,
    exits: bool = False,
    is_closed: bool = False,
) -> str:
    """Make an outer call with `act` at an opcode; return the defect of its outcome."""
    call, before, after = OUTER[name]
    if before is not None:
        before(house)
    countdown = Countdown(opcode, act, _ROOTS, interrupts_only=exits)
    countdown.start()
    try:
        call(house)
    except ClosedError:
        return "" if is_closed else "ClosedError"
    except IllegalState as error:
        # A nested call ended the transaction before the outer call began.
        return "" if "transaction" in name else f"the outer call raised {error!r}"
    except EmbedlogError as error:
        return f"the outer call raised {error!r}"
    finally:
        countdown.stop()
    if after is not None and not is_closed:
        after(house)
    return ""


def _places(
    house: House, name: str, share: int, chance: random.Random, *, interrupts_only: bool = False
) -> list[int]:
    """Return opcodes of an outer call, `share` of them at most."""
    counts = []
    for _ in range(3):
        countdown = Countdown(1 << 60, lambda: None, _ROOTS, interrupts_only=interrupts_only)
        call, before, after = OUTER[name]
        if before is not None:
            before(house)
        countdown.start()
        try:
            call(house)
        finally:
            countdown.stop()
        if after is not None:
            after(house)
        counts.append((1 << 60) - countdown.left)
    chosen = range(1, counts[-1] + 1)
    if len(chosen) > share:
        return sorted(chance.sample(chosen, share))
    return list(chosen)


def _endless(kinds: list[str]) -> Iterator[str]:
    while True:
        yield from kinds
