"""`CoordinatorCalls`: requests to the coordinators of groups or transactional ids."""

from __future__ import annotations

from embedlog import errors
from embedlog.client.admin.calls import told
from embedlog.client.cluster_nodes import Node
from embedlog.client.consumer.group.coordinator_lookup import LOST_COORDINATOR
from embedlog.errors import KafkaError, TimedOut, error_for
from embedlog.transport import ANY_NODE
from wire.error_codes import ErrorCode
from wire.schemas.find_coordinator import FindCoordinatorRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, TypeVar

    from embedlog.client.admin.calls import AdminCalls
    from wire.schema import R, Request
    from wire.schemas.find_coordinator import Coordinator, FindCoordinatorResponse

    V = TypeVar("V")

    # A coordinator's answer about one group: error code, error message, value.
    Answer = tuple[int, str | None, V]

GROUP_KEY = 0
TRANSACTION_KEY = 1
SHARE_KEY = 2
"""The key types of FindCoordinator."""
_SEVERAL_KEYS_SINCE = 4
_LOADING = frozenset((ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE))
_LOST = LOST_COORDINATOR | {ErrorCode.BROKER_NOT_AVAILABLE}
_ASK_AGAIN = _LOST | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}
_SILENCE = "the coordinator's answer does not mention the group"


def ask_all_coordinators(
    calls: AdminCalls,
    request: Request[Any],
    failures: dict[Any, KafkaError],
    timeout_ms: int | None,
) -> Iterator[Any]:
    """Ask each broker about all groups or transactional ids that it coordinates; yield the answers.

    Asks a broker again while its coordinator loads. Puts errors into `failures` by node id.
    """
    deadline = calls.deadline(timeout_ms)
    for node_id in calls.node_ids(timeout_ms):
        try:
            response = calls.call(node_id, request, calls.left_ms(deadline))
            while response.error_code in _LOADING and calls.left_ms(deadline):
                calls.sleep(deadline)
                response = calls.call(node_id, request, calls.left_ms(deadline))
        except KafkaError as error:
            failures[node_id] = error
            continue
        if response.error_code:
            failures[node_id] = error_for(response.error_code)
        yield response


class CoordinatorCalls:
    """Sends requests about groups until each group has an answer or `timeout_ms` is over.

    With `key_type` TRANSACTION_KEY the groups are transactional ids. `coordinators` holds the last
    known coordinator of each group. Create one object for each call of the user.
    """

    def __init__(
        self, calls: AdminCalls, timeout_ms: int | None, key_type: int = GROUP_KEY
    ) -> None:
        self._calls = calls
        self._key_type = key_type
        self._deadline = calls.deadline(timeout_ms)
        self.coordinators: dict[str, Node] = {}

    def ask(
        self,
        group_ids: Iterable[str],
        kind: type[Request[R]],
        request_for: Callable[[list[str], int], Request[R]],
        take: Callable[[R, list[str]], Mapping[str, Answer[V]]],
        *,
        version_max: int = 32_767,
        several_since: int = 0,
    ) -> dict[str, V | KafkaError]:
        """Return the value or the `KafkaError` of each group.

        `request_for(groups, version)` builds a request of class `kind`; if the version is below
        `several_since`, `groups` has only one group. `take(response, groups)` reads the answer. If
        a group's coordinator is unavailable, has moved or is loading, the request is repeated until
        the time is over; then the result is the coordinator's error.

        The requests are sent in parallel. If a coordinator does not answer, its groups have the
        error RequestTimedOut.

        Raises:
            TimedOut: no coordinator answers, or the broker that looks them up does not.
        """
        outcomes: dict[str, V | KafkaError] = {}
        silent: dict[str, TimedOut] = {}
        left = list(dict.fromkeys(group_ids))
        while True:
            self._find([each for each in left if each not in self.coordinators], outcomes)
            by_node: dict[int, list[str]] = {}
            for group in left:
                if group in self.coordinators:
                    by_node.setdefault(self.coordinators[group].node_id, []).append(group)
            requests: list[tuple[int, Request[R], int | None]] = []
            asked: list[list[str]] = []
            for node_id, groups in by_node.items():
                try:
                    newest = self._calls.newest_version(kind, node_id=node_id)
                except KafkaError as error:
                    outcomes.update(dict.fromkeys(groups, error))
                    continue
                version = min(newest, version_max)
                for chunk in [groups] if version >= several_since else [[each] for each in groups]:
                    asked.append(chunk)
                    requests.append((node_id, request_for(chunk, version), version))
            found = self._calls.at_once(requests, self._deadline)
            for chunk, response in zip(asked, found, strict=True):
                if isinstance(response, TimedOut):
                    silent.update(dict.fromkeys(chunk, response))
                    for group in chunk:
                        outcomes.pop(group, None)
                elif isinstance(response, KafkaError):
                    outcomes.update(dict.fromkeys(chunk, response))
                else:
                    outcomes.update(_outcomes(chunk, take(response, chunk)))
            left = [each for each in left if self._is_asked_again(each, outcomes.get(each))]
            if not left or not self._calls.left_ms(self._deadline):
                return told(outcomes, silent)
            self._calls.sleep(self._deadline)

    def ask_one(
        self,
        group_id: str,
        kind: type[Request[R]],
        request_for: Callable[[int], Request[R]],
        take: Callable[[R], Answer[V]],
        *,
        version_max: int = 32_767,
    ) -> V:
        """Return the value of one group, with the retries of `ask`.

        Raises:
            KafkaError: the group has an error.
            TimedOut: a coordinator, or the broker that looks it up, does not answer.
        """
        outcome = self.ask(
            [group_id],
            kind,
            lambda _groups, version: request_for(version),
            lambda response, _groups: {group_id: take(response)},
            version_max=version_max,
        )[group_id]
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    def _is_asked_again(self, group: str, outcome: object) -> bool:
        if not isinstance(outcome, KafkaError) or outcome.code not in _ASK_AGAIN:
            return False
        if outcome.code in _LOST:
            self.coordinators.pop(group, None)
        return True

    def _find(self, groups: list[str], outcomes: dict[str, V | KafkaError]) -> None:
        """Look up the groups' coordinators; put the errors of failed look-ups into `outcomes`."""
        if not groups:
            return
        version = self._calls.newest_version(
            FindCoordinatorRequest, self._calls.left_ms(self._deadline)
        )
        if version >= _SEVERAL_KEYS_SINCE:
            requests = [FindCoordinatorRequest(key_type=self._key_type, coordinator_keys=groups)]
        else:
            requests = [
                FindCoordinatorRequest(key_type=self._key_type, key=group) for group in groups
            ]
        for request in requests:
            asked = request.coordinator_keys or [request.key]
            try:
                response = self._calls.attempt(ANY_NODE, request, self._deadline)
            except KafkaError as error:
                outcomes.update(dict.fromkeys(asked, error))
                continue
            answers: dict[str, Coordinator | FindCoordinatorResponse] = {
                each.key: each for each in response.coordinators
            }
            if not answers:  # before version 4 the answer has one coordinator, at the top level
                answers[asked[0]] = response
            for group, found in answers.items():
                if found.error_code:
                    outcomes[group] = error_for(found.error_code, found.error_message)
                else:
                    self.coordinators[group] = Node(found.node_id, found.host, found.port, None)


def _outcomes(groups: list[str], answers: Mapping[str, Answer[V]]) -> dict[str, V | KafkaError]:
    outcomes: dict[str, V | KafkaError] = {}
    for group in groups:
        answer = answers.get(group)
        if answer is None:
            outcomes[group] = errors.UnknownServerError(_SILENCE)
        else:
            code, message, value = answer
            outcomes[group] = error_for(code, message) if code else value
    return outcomes
