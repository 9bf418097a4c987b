"""`CoordinatorLookup`: finds the group's coordinator, and finds it again after it has moved."""

from __future__ import annotations

from embedlog.client.backoff import Backoff, Retry
from embedlog.client.metadata import as_kafka_error
from embedlog.errors import error_for
from embedlog.transport import ANY_NODE
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.schemas.find_coordinator import FindCoordinatorRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.consumer.parts import ClientParts
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.find_coordinator import FindCoordinatorResponse

_GROUP_KEY = 0
_SEVERAL_KEYS_SINCE = 4
_NEWEST = 32_767

_PATIENCE_MS = 5_000
"""The first group of a cluster waits until the offsets topic is made."""
LOST_COORDINATOR = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    )
)
"""Errors after which the coordinator must be looked up again."""


class CoordinatorLookup:
    """Finds the group's coordinator. `advance` never waits."""

    def __init__(self, parts: ClientParts, group_id: str) -> None:
        self._parts = parts
        self._transport = parts.transport
        self._group_id = group_id
        self._pending: Pending[FindCoordinatorResponse] | None = None
        self._retry = Retry(Backoff.of_retries(parts.settings, parts.transport.runtime.random))
        self._is_needed = False
        self.node_id: int | None = None
        """Node id for requests to the coordinator; None while it is unknown."""
        self.failure_count = 0
        """Number of failed look-ups."""
        self._error: KafkaError | None = None
        self.last_error: KafkaError | None = None
        """The error of the last look-up; None if it succeeded."""

    def need(self) -> None:
        """Request a look-up if the coordinator is unknown."""
        self._is_needed = True

    def lost(self) -> None:
        """Request a new look-up: the coordinator does not answer, or is another broker now."""
        self.node_id = None
        self._is_needed = True

    def take_error(self) -> KafkaError | None:
        """Return and forget an error that a retry cannot cure; None if there is none."""
        error, self._error = self._error, None
        return error

    def newest(self, api_key: int) -> int:
        """Return the newest version of an API that the coordinator serves.

        If the coordinator is unknown, the version is from any broker whose versions are known.
        """
        versions = None
        if self.node_id is not None:
            versions = self._transport.versions(self.node_id)
        versions = versions or self._transport.versions(ANY_NODE) or {}
        return versions.get(api_key, (0, _NEWEST))[1]

    def advance(self, now_ms: int) -> int | None:
        """Send the request or take the answer; return milliseconds until the next retry, if any."""
        if self.node_id is not None or not self._is_needed:
            return None
        if self._pending is None:
            left = self._retry.left_ms(now_ms)
            if left:
                return left
            self._ask()
        assert self._pending is not None, self
        if not self._pending.done():
            return None
        pending, self._pending = self._pending, None
        error = pending.error()
        if error is None:
            error = self._take(pending.result())
        if error is not None:
            return self._failed(as_kafka_error(error), now_ms)
        self._retry.succeeded()
        self._parts.metadata.wanted.warnings.is_over(self)
        self.last_error = None
        self._is_needed = False
        return 0

    def _ask(self) -> None:
        if self.newest(ApiKey.FIND_COORDINATOR) < _SEVERAL_KEYS_SINCE:
            request = FindCoordinatorRequest(key=self._group_id)
        else:
            request = FindCoordinatorRequest(key_type=_GROUP_KEY, coordinator_keys=[self._group_id])
        self._pending = self._parts.send(ANY_NODE, request)

    def _take(self, response: FindCoordinatorResponse) -> KafkaError | None:
        found = response.coordinators[0] if response.coordinators else response
        if found.error_code:
            return error_for(found.error_code, found.error_message)
        self.node_id = self._transport.set_coordinator(found.node_id, found.host, found.port)
        return None

    def _failed(self, error: KafkaError, now_ms: int) -> int | None:
        self.failure_count += 1
        self.last_error = error
        self._parts.metadata.wanted.warnings.warn_if_lasting(
            self,
            now_ms,
            "the coordinator of group %r is not found: %s",
            self._group_id,
            error,
            patience_ms=_PATIENCE_MS,
        )
        self._retry.failed(now_ms)
        # After UNSUPPORTED_VERSION the old broker's versions are known: retry with one of these.
        if not error.retriable and error.code != ErrorCode.UNSUPPORTED_VERSION:
            self._error = error
            self._is_needed = False
            return 0
        return self._retry.left_ms(now_ms)
