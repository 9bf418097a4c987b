"""The numbers of a share partition, as Kafka's brokers have them in SharePartitionMetrics."""

from __future__ import annotations

from embedlog.sharing.delivery import ACQUIRED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.sharing.window import DeliveryWindow

    Metrics = dict[str, int]


def measured(window: DeliveryWindow, timeout_count: int) -> Metrics:
    """Return the present numbers of a share partition, by name.

    InFlightMessageCount    offsets of the window, in whatever state
    InFlightBatchCount      batches of the window
    AcquiredCount           records that members hold
    DeliveredCount.N        records that are not over and were delivered N times
    LockTimeoutCount        records that came back because a lock expired, since the broker loaded
                            the partition: the total of Kafka's AcquisitionLockTimeoutPerSec

    The names AcquiredCount, DeliveredCount and LockTimeoutCount are ours. Requires: the share
    partition's lock.
    """
    acquired = 0
    delivered: Metrics = {}
    for run in window.runs():
        if not run.is_over:
            name = f"DeliveredCount.{run.count}"
            delivered[name] = delivered.get(name, 0) + run.size
        if run.state == ACQUIRED:
            acquired += run.size
    return {
        "InFlightMessageCount": window.in_flight_count,
        "InFlightBatchCount": len(window.batches),
        "AcquiredCount": acquired,
        "LockTimeoutCount": timeout_count,
        **dict(sorted(delivered.items())),
    }
