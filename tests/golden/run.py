"""Play scenarios against a broker and record its answers.

A scenario is a function of a `Run`. Each `run.send(...)` is one step: it sends the request at one
version and records the normalised answer. `run.setup(...)` sends without recording. A closed
connection is recorded as an answer, and is opened again for the next step.

A request that waits for others takes two steps: `begin` records whether it waits, and `finish` its
answer. Meanwhile other requests use connections of their own, which `on` names.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import wire
from tests.golden.brokers import BROKERS, PLAIN
from tests.golden.normal import Normaliser
from tests.golden.targets import Closed, Link, Target
from wire.headers import request_header_version, response_header_version
from wire.registry import response_class
from wire.schema import declaration
from wire.schemas.produce import ProduceResponse

Scenario = Callable[["Run"], None]
SCENARIOS: dict[str, Scenario] = {}
BROKER_OF: dict[str, str] = {}
CLOSED = "the connection is closed"
ANSWERED = "an answer comes"
WAITS = "it waits"
NO_ANSWER = "no answer, the connection stays open"
SETTLE_MS = 400
LAST_STEPS = 12
POLL_MS = 50
POLL_COUNT_MAX = 400
CLIENT_ID = b"golden"
MUTATIONS = ("CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs")
MUTATIONS += ("IncrementalAlterConfigs", "UpdateFeatures", "ElectLeaders")
MUTATIONS += ("AlterPartitionReassignments", "UnregisterBroker")
VIEWS = ("DescribeGroups", "ListGroups", "ConsumerGroupDescribe")
VIEW_MS = 150
"""Pause before views, which show committed state: some answers come before their commit."""


def scenario(function: Scenario) -> Scenario:
    """Register a scenario under its function's name, played on the plain broker."""
    return scenario_on(PLAIN)(function)


def scenario_on(broker: str) -> Callable[[Scenario], Scenario]:
    """The same for one of the other `BROKERS`."""
    assert broker in BROKERS, broker

    def register(function: Scenario) -> Scenario:
        assert function.__name__ not in SCENARIOS, function.__name__
        SCENARIOS[function.__name__] = function
        BROKER_OF[function.__name__] = broker
        return function

    return register


class Asked(NamedTuple):
    """A request without its answer yet."""

    request: Any
    version: int
    note: str
    correlation_id: int

    @property
    def api(self) -> str:
        """The name of its API."""
        return _api(self.request)


class Run:
    """One scenario's play against one broker: its connections, steps and names.

    A patient target gets time to apply a change before the next step. embedlog has applied it when
    it answers.
    """

    def __init__(self, target: Target, name: str) -> None:
        self.target = target
        self.name = name.replace("_", "-")
        self.steps: list[dict[str, Any]] = []
        self.where: dict[str, Any] = {}
        """Fields of every step."""
        self.normal = Normaliser(own_groups=self.group(""))
        self._links: dict[str, Link] = {}
        self._asked: dict[str, Asked] = {}
        self._correlation_id = 0

    def topic(self, suffix: str = "t") -> str:
        """Return a topic name of this scenario."""
        return f"g-{self.name}-{suffix}"

    def group(self, suffix: str = "g") -> str:
        """Return a group id of this scenario."""
        return f"{self.name}:{suffix}"

    def send(self, request: Any, version: int, note: str = "", *, on: str = "") -> Any:
        """One step: send, and return the answer, or None if the connection was closed."""
        if self.target.is_patient and _api(request) in VIEWS:
            self.let_pass(VIEW_MS)
        asked = self._ask(request, version, note, on)
        answer = self._answer(asked, on)
        self._keep(asked, CLOSED if answer is None else self.normal(answer))
        return answer

    def setup(self, request: Any, version: int, *, on: str = "") -> Any:
        """Send without a step; the answer must come."""
        answer = self._answer(self._ask(request, version, "", on), on)
        assert answer is not None, (request, version)
        if isinstance(answer, ProduceResponse):
            codes = [p.error_code for t in answer.responses for p in t.partition_responses]
            assert not any(codes), answer
        return answer

    def begin(
        self, request: Any, version: int, note: str = "", *, on: str, keep: bool = True
    ) -> None:
        """Begin a request whose answer may wait; the step records whether it does."""
        asked = self._ask(request, version, note, on)
        self._asked[on] = asked
        answered = self._links[on].answered()
        if keep:
            self._keep(asked, ANSWERED if answered else WAITS)

    def waits(self, note: str, *, on: str) -> None:
        """One step: whether the request on that connection still waits."""
        self.keep(note, ANSWERED if self._links[on].answered() else WAITS)

    def keep(self, note: str, fact: Any) -> None:
        """Add a step with a result of the scenario itself."""
        self.steps.append({**self.where, "note": note, "answer": fact})

    def finish(self, *, on: str, keep: bool = True) -> Any:
        """One step: the answer to the request on that connection."""
        asked = self._asked.pop(on)
        answer = self._answer(asked, on)
        if keep:
            self._keep(asked, CLOSED if answer is None else self.normal(answer))
        return answer

    def until(
        self,
        settled: Callable[[Any], bool],
        request: Any,
        version: int,
        note: str = "",
        *,
        on: str = "",
        keep: bool = True,
    ) -> Any:
        """Repeat a request until the answer is `settled`, and record that answer as the step.

        This is for changes that a broker makes some time after its answer.
        """
        for _ in range(POLL_COUNT_MAX):
            asked = self._ask(request, version, note, on)
            answer = self._answer(asked, on)
            if answer is None or settled(answer):
                break
            self.let_pass(POLL_MS)
        if keep:
            self._keep(asked, CLOSED if answer is None else self.normal(answer))
        return answer

    def let_pass(self, delay_ms: int) -> None:
        """Let time pass: real time for a real broker."""
        self.target.let_pass(delay_ms)

    def send_unanswered(self, request: Any, version: int, note: str = "") -> None:
        """Send a request without an answer (acks 0); record whether the connection survives."""
        from wire.schemas.api_versions import ApiVersionsRequest

        asked = self._ask(request, version, note, "")
        alive = self._answer(self._ask(ApiVersionsRequest(), 0, "", ""), "") is not None
        self._keep(asked, NO_ANSWER if alive else CLOSED)

    def raw(self, payload: bytes, note: str, *, keep_bytes: bool = True) -> bytes | None:
        """Send a hand-made frame; record the answer's bytes, or that the connection was closed."""
        answer: bytes | None
        try:
            self._link("").send(payload)
            answer = self._link("").receive()
        except Closed:
            self._hang_up("")
            answer = None
        if answer is not None:
            self.keep(note, answer.hex() if keep_bytes else ANSWERED)
        else:
            self.keep(note, CLOSED)
        return answer

    def close(self) -> None:
        """Close the connections; the steps stay."""
        for name in list(self._links):
            self._hang_up(name)

    def frame(self, request: Any, version: int, *, api_key: int | None = None) -> bytes:
        """Return the bytes of a request, for a scenario that changes them."""
        key = declaration(type(request)).api if api_key is None else api_key
        self._correlation_id += 1
        header = struct.pack(">hhih", key, version, self._correlation_id, len(CLIENT_ID))
        header += CLIENT_ID
        if request_header_version(declaration(type(request)).api, version) >= 2:
            header += b"\x00"
        return header + wire.encode(request, version)

    def _keep(self, asked: Asked, answer: Any) -> None:
        names = {"api": asked.api, "version": asked.version, "note": asked.note}
        self.steps.append({**self.where, **names, "answer": answer})

    def _ask(self, request: Any, version: int, note: str, on: str) -> Asked:
        frame = self.frame(request, version)
        try:
            self._link(on).send(frame)
        except Closed:
            self._hang_up(on)
        return Asked(request, version, note, self._correlation_id)

    def _answer(self, asked: Asked, on: str) -> Any:
        """Return the answer as a message; None if the connection was closed instead."""
        if on not in self._links:
            return None
        try:
            frame = self._link(on).receive()
        except Closed:
            self._hang_up(on)
            return None
        except TimeoutError:
            raise AssertionError(f"no answer to {asked.api} {asked.version} {asked.note}") from None
        (correlation_id,) = struct.unpack_from(">i", frame)
        assert correlation_id == asked.correlation_id, "an answer to another request"
        if self.target.is_patient and asked.api in MUTATIONS:
            self.let_pass(SETTLE_MS)
        api_key = declaration(type(asked.request)).api
        position = 5 if response_header_version(api_key, asked.version) >= 1 else 4
        return wire.decode(response_class(api_key), asked.version, frame, position)

    def _link(self, name: str) -> Link:
        if name not in self._links:
            self._links[name] = self.target.connect()
        return self._links[name]

    def _hang_up(self, name: str) -> None:
        link = self._links.pop(name, None)
        if link is not None:
            link.close()


def _api(request: Any) -> str:
    return type(request).__name__.removesuffix("Request")


def play(target: Target, name: str) -> list[dict[str, Any]]:
    """Play one scenario; return its steps with the normalised answers."""
    run = Run(target, name)
    try:
        SCENARIOS[name](run)
    except AssertionError as error:
        error.add_note("\n".join(str(step) for step in [f"{name}: ...", *run.steps[-LAST_STEPS:]]))
        raise
    finally:
        run.close()
    return run.steps


__all__ = ["CLOSED", "NO_ANSWER", "SCENARIOS", "Run", "play", "scenario", "scenario_on"]
