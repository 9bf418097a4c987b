"""The degradations of a data directory, collected on request from the parts that know them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from embedlog.common import TopicPartition
from embedlog.errors import ClosedError, CorruptRecord
from embedlog.runtime.files import Files
from embedlog.storage import degradation as kinds
from embedlog.storage import paths
from embedlog.storage.degradation import Degradation
from embedlog.storage.directory.log_opener import LogOpener
from embedlog.storage.directory.owned_directory import OwnedDirectory
from embedlog.storage.directory.tasks import LogTasks
from embedlog.storage.log.log import Log
from embedlog.storage.state_files import staged_layout


def degradations(
    owned: OwnedDirectory,
    partitions: Iterable[TopicPartition],
    logs: Iterable[Log],
    opener: LogOpener,
    tasks: LogTasks,
) -> list[Degradation]:
    """Return all degradations, sorted by kind and subject.

    After a clean close a log is opened at its first use, so damage in an unused log is unknown.
    """
    found = [*_of_logs(logs), *_of_tasks(owned.path, tasks)]
    for opened in list(opener.found.values()):
        found += opened
    try:
        found += _refused(owned.files, owned.path)
    except OSError as why:  # the disk of the whole directory fails
        found.append(Degradation(kinds.OFFLINE, owned.path, since_ms=-1, reason=str(why)))
    for topic_partition, (since_ms, error) in list(opener.unreachable.items()):
        reason, subject = str(error), str(topic_partition)
        found.append(Degradation(kinds.UNREACHABLE, subject, since_ms=since_ms, reason=reason))
    for topic_partition in partitions:
        directory = paths.log_directory(owned.path, topic_partition)
        found += _quarantined(owned.files, directory, str(topic_partition))
    return sorted(found)


def _of_logs(logs: Iterable[Log]) -> Iterator[Degradation]:
    for log in logs:
        failure = log.failure
        for state, since_ms, error in log.refusals():
            subject = f"{log.topic_partition}: {state}"
            yield Degradation(kinds.WORK_FAILING, subject, since_ms=since_ms, reason=str(error))
        if log.health.damage is not None and not isinstance(failure, CorruptRecord):
            since_ms, damage = log.health.damage
            yield Degradation(
                kinds.DAMAGED, str(log.topic_partition), since_ms=since_ms, reason=str(damage)
            )
        if failure is None or isinstance(failure, ClosedError):
            continue
        kind = kinds.DAMAGED if isinstance(failure, CorruptRecord) else kinds.READ_ONLY
        subject, since_ms = str(log.topic_partition), log.health.failed_since_ms
        yield Degradation(kind, subject, since_ms=since_ms, reason=str(failure))


def _of_tasks(path: str, tasks: LogTasks) -> Iterator[Degradation]:
    guard = tasks.clock_guard
    if guard.is_paused:
        since_ms, reason = guard.paused_since_ms, guard.reason
        yield Degradation(kinds.RETENTION_PAUSED, path, since_ms=since_ms, reason=reason)
    for work, (since_ms, reason) in list(tasks.failing.items()):
        subject = f"{path}: {work}"
        yield Degradation(kinds.WORK_FAILING, subject, since_ms=since_ms, reason=reason)
    if tasks.cleaner is not None:
        for log, (since_ms, reason) in list(tasks.cleaner.uncleanable.items()):
            subject = str(log.topic_partition)
            yield Degradation(kinds.UNCLEANABLE, subject, since_ms=since_ms, reason=reason)


def _refused(files: Files, data: str) -> Iterator[Degradation]:
    """Yield the manifests and pins that were set aside."""
    place = staged_layout.part(data, staged_layout.REFUSED)
    for name in staged_layout.names_in(files, data, staged_layout.REFUSED):
        stat = files.stat(f"{place}/{name}")
        if stat is not None:
            reason = f"{ascii(name)} of another process cannot be understood; it is in {place}"
            yield Degradation(kinds.QUARANTINED, data, since_ms=stat.modified_ms, reason=reason)


def _quarantined(files: Files, directory: str, subject: str) -> Iterator[Degradation]:
    try:
        names = files.list(directory)
    except OSError:
        return  # deleted meanwhile, never stored, or unreachable
    for name in names:
        stat = files.stat(f"{directory}/{name}") if name.endswith(paths.QUARANTINE) else None
        if stat is not None:
            reason = f"{stat.size} bytes were put aside in {directory}/{name}"
            since_ms = stat.modified_ms
            yield Degradation(kinds.QUARANTINED, subject, since_ms=since_ms, reason=reason)
