"""The result of an operation on a shard: records to append, and the response."""

from __future__ import annotations

from embedlog.common import Generic, T, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from embedlog.storage.producers.entry import VerificationState
    from wire.records.control import BuiltMarker

    R = TypeVar("R")
    OnAppend = Callable[[KafkaError | None], None]


class CoordinatorRecord:
    """One record of a coordinator's topic, as messages of `wire.schemas`; immutable.

    A `value` of None is a tombstone: it deletes the state under `key`.
    """

    __slots__ = ("key", "value", "value_version")

    def __init__(self, key: Any, value: Any = None, value_version: int = 0) -> None:
        self.key = key
        self.value = value
        self.value_version = value_version

    def __repr__(self) -> str:
        return f"CoordinatorRecord({self.key!r}, {self.value!r}, v{self.value_version})"


class Marker(Value):
    """The end of a transaction that wrote to the shard's log; `batch` is the control batch.

    `transaction_version` is the client's, see `ProducerStateManager.prepare_marker`.
    """

    batch: BuiltMarker
    producer_id: int
    is_committed: bool
    transaction_version: int


class Producer(Value):
    """The producer of transactional records, which count once its commit marker is appended.

    With `verification` the append checks that the transaction is still open: see
    `Partition.begin_verification`.
    """

    producer_id: int
    producer_epoch: int
    verification: VerificationState | None


class Result(Generic[T]):
    """The result of one operation; see the attributes of `__init__`."""

    __slots__ = (
        "is_atomic",
        "is_replayed",
        "marker",
        "on_append",
        "producer",
        "records",
        "response",
    )

    def __init__(
        self,
        records: Sequence[CoordinatorRecord] = (),
        response: T | Pending[T] | None = None,
        *,
        is_atomic: bool = True,
        is_replayed: bool = True,
        on_append: OnAppend | None = None,
        marker: Marker | None = None,
        producer: Producer | None = None,
    ) -> None:
        self.records = records
        self.is_atomic = is_atomic
        """True: append one batch, so that a crash leaves all records or none. False: several
        batches are allowed, because each record is valid alone."""
        self.response = response
        """The response, or a `Pending` of it if the request stays parked after this operation."""
        self.is_replayed = is_replayed
        """False: the shard's state already includes the records, so they are not replayed."""
        self.on_append = on_append
        """Called once, under the shard's lock: with the error for the client, or with None once the
        records are committed."""
        self.marker = marker
        """Appended before the records; it commits or aborts its producer's earlier records."""
        self.producer = producer
        """The producer whose transaction contains the records; None if they count at once."""

    def __repr__(self) -> str:
        return f"Result({len(self.records)} records, {self.response!r})"
