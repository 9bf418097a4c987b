"""The degradations of a broker: of its data directories and its background work."""

from __future__ import annotations

from embedlog.storage.degradation import OFFLINE, WORK_FAILING, Degradation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.scheduler import Scheduler
    from embedlog.storage.data_directories import DataDirectories


def degradations(manager: DataDirectories, scheduler: Scheduler) -> list[Degradation]:
    """Return every degradation, sorted by kind and subject."""
    found = [each for owner in manager.managers for each in owner.health()]
    for gone in manager.offline:
        since_ms, reason = gone.since_ms, gone.reason
        found.append(Degradation(OFFLINE, gone.path, since_ms=since_ms, reason=reason))
    if manager.relocations is not None:
        found += manager.relocations.health()
    for duty, (since_ms, error) in list(scheduler.failing.items()):
        subject, reason = type(duty).__name__, f"{type(error).__name__}: {error}"
        found.append(Degradation(WORK_FAILING, subject, since_ms=since_ms, reason=reason))
    return sorted(found)
