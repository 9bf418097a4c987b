"""What an operation on a shard gives back: records to append, and the response to answer with."""

from __future__ import annotations

from embedlog.common import Generic, T

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
    """One record of a coordinator's topic, as messages of `wire.schemas`; never changed.

    `value` None is a tombstone: it deletes what `key` stands for.
    """

    __slots__ = ("key", "value", "value_version")

    def __init__(self, key: Any, value: Any = None, value_version: int = 0) -> None:
        self.key = key
        self.value = value
        self.value_version = value_version

    def __repr__(self) -> str:
        return f"CoordinatorRecord({self.key!r}, {self.value!r}, v{self.value_version})"


class Marker:
    """The end of a transaction that wrote to the shard's log: `batch` is the control batch.

    `transaction_version` is that of its client, see `ProducerStateManager.prepare_marker`.
    """

    __slots__ = ("batch", "is_committed", "producer_id", "transaction_version")

    def __init__(
        self, batch: BuiltMarker, producer_id: int, *, is_committed: bool, transaction_version: int
    ) -> None:
        self.batch = batch
        self.producer_id = producer_id
        self.is_committed = is_committed
        self.transaction_version = transaction_version


class Producer:
    """Whose transaction the records belong to; they count once its marker says so.

    `verification` is what guards the first of them, see `Partition.begin_verification`.
    """

    __slots__ = ("producer_epoch", "producer_id", "verification")

    def __init__(
        self, producer_id: int, producer_epoch: int, verification: VerificationState | None
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verification = verification


class Result(Generic[T]):
    """The outcome of one operation; see the attributes of `__init__`."""

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
        """Are the records appended as one batch, so that all of them survive or none? False: there
        may be more of them than fit into one, and each is right by itself."""
        self.response = response
        """The answer, or a `Pending` of it: a request that is parked beyond this operation."""
        self.is_replayed = is_replayed
        """Are the records replayed into the shard once appended? False: its state is up to date."""
        self.on_append = on_append
        """Called once, under the shard's lock: with None when the records are committed, with what
        clients are told when they are not."""
        self.marker = marker
        """Appended before the records; what its producer has written counts from then on, or
        never."""
        self.producer = producer
        """Whose transaction the records belong to; None: they count at once."""

    def answering(self, response: R) -> Result[R]:
        """The same with another response."""
        return Result(
            self.records,
            response,
            is_atomic=self.is_atomic,
            is_replayed=self.is_replayed,
            on_append=self.on_append,
            marker=self.marker,
            producer=self.producer,
        )

    def __repr__(self) -> str:
        return f"Result({len(self.records)} records, {self.response!r})"
