"""`Faults`: the rules of a cluster."""

from __future__ import annotations

from embedlog.errors import ClosedError, ConfigError
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.testing.faults import options
from embedlog.testing.faults.actions import Keep
from embedlog.testing.faults.hold import Hold
from embedlog.testing.faults.presets import Presets
from embedlog.testing.faults.rule import FaultRule
from embedlog.testing.faults.stage import RuleStage
from embedlog.testing.faults.waiting import Waiting
from embedlog.testing.interception import RULES
from embedlog.testing.unfired import UnfiredFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Protocol, Unpack

    from embedlog.broker.broker import Broker
    from embedlog.cluster.cluster import Cluster
    from embedlog.controller.metadata import MetadataImage
    from embedlog.testing.faults.matching import Matcher
    from embedlog.testing.faults.options import FaultOptions, TriggerOptions
    from embedlog.testing.interception import Call, Stages

    class Recording(Protocol):
        """The timeline that shows when rules act."""

        def note_fault(self, rule: object, call: Call) -> None:
            """Add an event."""


class Faults(Presets):
    """The rules of a cluster, the oldest first; each request meets them in this order.

    A rule that answers a request itself hides it from younger rules. Every method may be called
    from any thread.
    """

    def __init__(
        self,
        cluster: Cluster,
        stages: Stages,
        recording: Callable[[], Recording | None] = lambda: None,
    ) -> None:
        """`recording()` returns the present recording, which shows when rules act."""
        self.scheduler = cluster.runtime.scheduler
        self.on_hit: Callable[[FaultRule, Call], object] | None = None
        """Called each time a rule acts, in the thread of the request."""
        self._cluster = cluster
        self._stages = stages
        self._recording = recording
        self._waiting = Waiting(cluster.runtime, self._runs)
        self._lock = ranked_lock(Rank.FAULT_RULES)
        self._rules: list[FaultRule] = []
        self._unchecked: list[FaultRule] = []
        """Rules, also removed ones, that have not been checked."""
        self._stage: RuleStage | None = None
        self._count = 0
        self._is_closed = False

    def move(self, cluster: Cluster) -> None:
        """Go on at another cluster, which replaces the present one. Requests that wait break."""
        self._cluster = cluster
        self.scheduler = cluster.runtime.scheduler
        self._waiting.move(cluster.runtime)

    # Rules

    def add(self, *apis: str, **given: Unpack[FaultOptions]) -> FaultRule:
        """Make a rule: see `Kafka.fault`."""
        arguments: dict[str, Any] = dict(given)
        names = (*options.MATCHERS, *options.TRIGGERS, *options.ACTIONS)
        options.check_names(arguments, names)
        self._check_open()
        action = options.action_of(arguments, self._waiting, self._image)
        matcher = options.matcher_of(apis, arguments)
        self._check_nodes(matcher)
        options.fit(matcher, action, is_named=bool(apis))
        trigger = options.triggered(arguments)
        may_miss = bool(arguments.get("may_miss"))
        return self._added(
            lambda number: FaultRule(self, number, matcher, trigger, action, may_miss=may_miss)
        )

    def hold(self, *apis: str, after_apply: bool = False, **given: Unpack[TriggerOptions]) -> Hold:
        """Make a rule that holds requests: see `Kafka.hold`."""
        return self._hold(apis, dict(given), after_apply=after_apply)

    def blackhole(self, **given: Unpack[TriggerOptions]) -> Hold:
        """Make a rule that lets a client's requests vanish: see `Kafka.blackhole`."""
        if not {"client_id", "principal", "node", "where"} & given.keys():
            raise ConfigError(
                "a black hole needs to know whose requests vanish: client_id=, principal=, node= "
                "or where="
            )
        return self._hold((), dict(given), drops_left=True)

    def _hold(
        self,
        apis: tuple[str, ...],
        given: dict[str, Any],
        *,
        after_apply: bool = False,
        drops_left: bool = False,
    ) -> Hold:
        options.check_names(given, (*options.MATCHERS, *options.TRIGGERS))
        self._check_open()
        if not {"once", "times", "always", "chance"} & given.keys():
            given["always"] = True
        matcher = options.matcher_of(apis, given)
        self._check_nodes(matcher)
        trigger = options.triggered(given)
        action = Keep(self._waiting, after_apply=after_apply, drops_left=drops_left)
        may_miss = bool(given.get("may_miss"))
        made = self._added(
            lambda number: Hold(
                self._waiting, self, number, matcher, trigger, action, may_miss=may_miss
            )
        )
        assert isinstance(made, Hold)
        return made

    def _added(self, make: Callable[[int], FaultRule]) -> FaultRule:
        with self._lock:
            self._count += 1
            rule = make(self._count)
            self._rules.append(rule)
            self._unchecked.append(rule)
            self._install()
        return rule

    def _install(self) -> None:
        """Requires: the lock."""
        if self._rules:
            self._stage = RuleStage(self._rules, self._stage)
            self._stages.put(RULES, self._stage)
        else:
            self._stage = None
            self._stages.put(RULES, None)

    def _check_open(self) -> None:
        if self._is_closed or self._cluster.is_closed:
            raise ClosedError("the cluster was closed")

    def _check_nodes(self, matcher: Matcher) -> None:
        known = {node.node_id for node in self._cluster.brokers}
        for node_id in matcher.numbers.get("node", ()):
            if node_id not in known:
                shown = ", ".join(map(str, sorted(known)))
                raise ConfigError(f"node={node_id}: there is no such broker; known are {shown}")

    # The list

    def clear(self, *, may_miss: bool = False) -> None:
        """Remove every rule, and check each as at the end of its `with`.

        Raises:
            UnfiredFault: rules never acted. Not with `may_miss`.
        """
        __tracebackhide__ = True  # pytest then shows the line of the test
        for rule in list(self):
            rule.remove()
        self._check_all(may_miss=may_miss)

    def __iter__(self) -> Iterator[FaultRule]:
        return iter(tuple(self._rules))

    def __len__(self) -> int:
        return len(self._rules)

    def __repr__(self) -> str:
        return f"<Faults {list(self)}>"

    # The end

    def release(self) -> None:
        """Break the connections of all requests that wait, and let no other request wait.

        `Kafka.close` calls it before it closes the clients, which may wait for their answers.
        """
        self._waiting.close()

    def close(self) -> None:
        """End everything: see `clear`. Later rules are refused. Idempotent."""
        __tracebackhide__ = True
        self._is_closed = True
        self.release()
        self.clear()

    def _check_all(self, *, may_miss: bool) -> None:
        __tracebackhide__ = True
        stories = []
        for rule in list(self._unchecked):
            try:
                rule.check()
            except UnfiredFault as error:
                stories.append(str(error))
        if stories and not may_miss:
            raise UnfiredFault("\n".join(stories))

    # For the rules

    def removed(self, rule: FaultRule) -> None:
        """Take a rule out of the way of requests."""
        with self._lock:
            if rule in self._rules:
                self._rules.remove(rule)
                if not self._is_closed:
                    self._install()

    def settled(self, rule: FaultRule) -> None:
        """Note that the rule was checked."""
        with self._lock:
            if rule in self._unchecked:
                self._unchecked.remove(rule)

    def near(self, rule: FaultRule) -> Sequence[str]:
        """Return lines about requests near the rule, and why they did not match."""
        stage = self._stage
        return () if stage is None else stage.near(rule)

    def noticed(self, rule: FaultRule, call: Call) -> None:
        """Note that the rule has acted."""
        recording = self._recording()
        if recording is not None:
            recording.note_fault(rule, call)
        if self.on_hit is not None:
            self.on_hit(rule, call)

    # The cluster

    def _image(self) -> MetadataImage:
        running = self._running()
        if not running:
            raise ClosedError("no broker runs, whose metadata could be kept")
        return running[0].image

    def _runs(self, broker: Broker) -> bool:
        return broker in self._running()

    def _running(self) -> list[Broker]:
        found = []
        for node in self._cluster.brokers:
            if node.is_running:
                found.append(node.core)
        return found
