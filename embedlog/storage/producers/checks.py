"""The batches and markers of a producer that a leader refuses, and Kafka's messages for them.

A client's batch is compared with its producer's entry (KIP-98, KIP-360, KIP-890):

    same epoch, sequence range equal to one of the last 5 batches    duplicate: not written again
    epoch older than the entry's                                     INVALID_PRODUCER_EPOCH
    no entry                                  any first sequence     accepted
    entry of another epoch                    first sequence 0       accepted
    entry of the same epoch, no batches yet   first sequence 0       accepted
    entry of the same epoch                   last sequence + 1      accepted (0 follows 2^31-1)
    otherwise                                                        OUT_OF_ORDER_SEQUENCE_NUMBER
"""

from __future__ import annotations

from embedlog import errors
from embedlog.storage.producers.entry import NO_OFFSET, NO_PRODUCER_EPOCH, SEQUENCE_COUNT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.producers.entry import ProducerStateEntry, VerificationState


class ProducerChecks:
    """The checks of the partition `name`. `entry` is always the state of the batch's producer.

    A check raises InvalidProducerEpoch for an old epoch, and OutOfOrderSequenceNumber if an earlier
    batch is missing.
    """

    __slots__ = ("name",)

    def __init__(self, name: object) -> None:
        self.name = name

    def at(self, entry: ProducerStateEntry, offset: int) -> str:
        """Return the producer, the offset and the partition as text for an error message."""
        return f"producer {entry.producer_id} at offset {offset} in partition {self.name}"

    def check_epoch(self, entry: ProducerStateEntry, epoch: int, offset: int) -> None:
        """Refuse a writer whose epoch is older than the last seen one."""
        if epoch < entry.producer_epoch:
            raise errors.InvalidProducerEpoch(
                f"Epoch of {self.at(entry, offset)} is {epoch}, which is smaller than the last "
                f"seen epoch {entry.producer_epoch}"
            )

    def check_raised_epoch(self, entry: ProducerStateEntry, epoch: int, offset: int) -> None:
        """Refuse a marker unless its epoch, which the coordinator raised, is above the entry's.

        An equal epoch is accepted if no transaction is open: the marker is a retry.
        """
        is_retry = epoch == entry.producer_epoch and entry.current_txn_first_offset == NO_OFFSET
        if epoch <= entry.producer_epoch and not is_retry:
            raise errors.InvalidProducerEpoch(
                f"Epoch of {self.at(entry, offset)} is {epoch}, which is <= the last seen epoch "
                f"{entry.producer_epoch}"
            )

    def check_verified_sequence(
        self,
        entry: ProducerStateEntry,
        sequence: int,
        offset: int,
        verification: VerificationState,
        *,
        lowest: int,
    ) -> None:
        """Refuse the first batch of a transaction if its sequence is above the `lowest` seen."""
        if verification.supports_epoch_bump and sequence != 0 and not entry.batches:
            raise errors.OutOfOrderSequenceNumber(
                f"Invalid sequence number for {self.at(entry, offset)}: {sequence} (incoming "
                "seq. number). Expected sequence 0 for transactions v2 idempotent producer with "
                "no existing state."
            )
        if sequence > lowest:
            raise errors.OutOfOrderSequenceNumber(
                f"Out of order sequence number for {self.at(entry, offset)}: {sequence} (incoming "
                f"seq. number), {lowest} (earliest seen sequence)"
            )

    def check_sequence(
        self, entry: ProducerStateEntry, epoch: int, sequence: int, offset: int
    ) -> None:
        """Refuse a batch that does not follow the last one, by the table at the top of the file."""
        current_epoch = entry.producer_epoch
        # The producer is unknown, perhaps because its records were deleted (KIP-360).
        if current_epoch == NO_PRODUCER_EPOCH:
            return
        if epoch != current_epoch:
            if sequence != 0:
                raise errors.OutOfOrderSequenceNumber(
                    f"Invalid sequence number for new epoch of {self.at(entry, offset)}: {epoch} "
                    f"(request epoch), {sequence} (seq. number), {current_epoch} (current "
                    "producer epoch)"
                )
            return
        current = entry.last_sequence
        if sequence != (current + 1) % SEQUENCE_COUNT:
            raise errors.OutOfOrderSequenceNumber(
                f"Out of order sequence number for {self.at(entry, offset)}: {sequence} (incoming "
                f"seq. number), {current} (current end sequence number)"
            )


def check_guard(
    entry: ProducerStateEntry,
    known: ProducerStateEntry | None,
    epoch: int,
    verification: VerificationState,
) -> None:
    """Raise InvalidTxnState unless the batch joins an open transaction, or begins the verified one.

    `known` is the producer's entry now; `verification` has the entry when the verification began.
    """
    if entry.current_txn_first_offset != NO_OFFSET and entry.producer_epoch == epoch:
        return
    if verification.is_open or verification.entry is not known:
        raise errors.InvalidTxnState("Record was not part of an ongoing transaction")
