"""What is degraded in a cluster: its data directory, and its work in the background."""

from __future__ import annotations

from embedlog.storage.degradation import WORK_FAILING, Degradation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.scheduler import Scheduler
    from embedlog.storage.log_manager import LogManager


def degradations(manager: LogManager, scheduler: Scheduler) -> list[Degradation]:
    """Everything that is degraded, sorted by kind and subject."""
    found = manager.health()
    for duty, (since_ms, error) in list(scheduler.failing.items()):
        subject, reason = type(duty).__name__, f"{type(error).__name__}: {error}"
        found.append(Degradation(WORK_FAILING, subject, since_ms=since_ms, reason=reason))
    return sorted(found)
