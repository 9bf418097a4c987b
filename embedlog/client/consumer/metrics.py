"""Some of Kafka's consumer metrics, under Kafka's names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.consumer.fetch_buffer import FetchBuffer
    from embedlog.client.consumer.group.consumer_coordinator import ConsumerCoordinator
    from embedlog.client.consumer.parts import ConsumerParts


def metrics_of(
    parts: ConsumerParts, buffer: FetchBuffer, coordinator: ConsumerCoordinator | None
) -> dict[str, float]:
    """Return the present values. Any thread may call it."""
    found = {name: float(count) for name, count in parts.counts.items()}
    # One copy: the thread that uses the consumer may be changing the assignment.
    partitions = list(parts.subscription.partitions.values())
    lags = [buffer.lag(state) for state in partitions]
    found["assigned-partitions"] = float(len(partitions))
    found["records-lag-max"] = float(max((lag for lag in lags if lag is not None), default=0))
    if coordinator is not None:
        now_ms = parts.transport.runtime.clock.monotonic_ms()
        heard = coordinator.member.heartbeat_sent_ms
        found["last-heartbeat-seconds-ago"] = -1.0 if heard is None else (now_ms - heard) / 1000
    return found
