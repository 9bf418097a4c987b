"""What `send` and `send_batch` need of the rest of a producer."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.interceptors import InterceptorChain
    from embedlog.client.producer.destinations import Destinations
    from embedlog.client.producer.failures import Failures
    from embedlog.client.producer.memory_wait import MemoryWait
    from embedlog.client.producer.producer_batch import Delivery
    from embedlog.client.producer.record_accumulator import RecordAccumulator
    from embedlog.client.producer.record_sizes import RecordLimits
    from embedlog.client.serializers import Converter
    from embedlog.runtime import Clock


class SendParts:
    """The parts of one producer that records pass on their way to a queue."""

    __slots__ = (
        "accumulator",
        "clock",
        "delivery",
        "destinations",
        "failures",
        "interceptors",
        "limits",
        "memory",
        "serialize_key",
        "serialize_value",
    )

    def __init__(
        self,
        delivery: Delivery,
        *,
        destinations: Destinations,
        accumulator: RecordAccumulator,
        memory: MemoryWait,
        limits: RecordLimits,
        serializers: tuple[Converter | None, Converter | None],
        clock: Clock,
        interceptors: InterceptorChain | None,
        failures: Failures,
    ) -> None:
        """`serializers` are those of keys and of values."""
        self.delivery = delivery
        self.destinations = destinations
        self.accumulator = accumulator
        self.memory = memory
        self.limits = limits
        self.serialize_key, self.serialize_value = serializers
        self.clock = clock
        self.interceptors = interceptors
        self.failures = failures
