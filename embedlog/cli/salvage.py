"""`embedlog salvage`: remove damage from the logs of a closed directory."""

from __future__ import annotations

from contextlib import closing

from embedlog.cli.directory import data_directory, is_chosen
from embedlog.cli.exit_status import EXIT_DAMAGED
from embedlog.common import TopicPartition
from embedlog.errors import ConfigError
from embedlog.runtime import real_runtime
from embedlog.runtime.files import Files
from embedlog.storage import paths
from embedlog.storage.directory.checkpoints import Checkpoints
from embedlog.storage.log.gaps import read_gaps_below
from embedlog.storage.recovery.salvage import SalvagePlan
from embedlog.storage.state_files.clean_shutdown import (
    begin_recovery,
    holds_marker,
    take_marker,
)


def run(path: str, *, topic: str | None, partition: int | None, dry_run: bool) -> int:
    """Report and repair each damaged log; return the exit status."""
    files = real_runtime().files
    directory = data_directory(files, path)
    lock = f"{directory}/{paths.LOCK}"
    was_used = files.stat(lock) is not None
    with closing(files.lock(lock, names_owner=False)) as held:
        if was_used and not dry_run:
            # Before the lock names this process: that marks all data as written in this boot.
            begin_recovery(files, directory)
        if not dry_run:
            held.name_owner()
        return _salvage(files, directory, topic, partition, is_dry=dry_run)


def _salvage(
    files: Files, directory: str, topic: str | None, partition: int | None, *, is_dry: bool
) -> int:
    found = [each for each in map(paths.parse_log_directory, files.list(directory)) if each]
    chosen = sorted(filter(is_chosen(topic, partition), found))
    if not chosen:
        raise ConfigError(f"{directory}: no such topic or partition")
    checkpoints = Checkpoints(files, directory, found, sync=True)
    is_clean = holds_marker(files, directory)
    count = 0
    for which in chosen:
        plan = SalvagePlan(
            files,
            paths.log_directory(directory, which),
            gaps_below=read_gaps_below(files, directory, which),
            recovery_point=checkpoints.recovery_point(which),
            clean=is_clean,
        )
        if not plan.is_needed:
            continue
        count += 1
        print(_summary(which, plan, "would keep" if is_dry else "kept"))
        if is_dry:
            continue
        # The next open must recover all logs and begin a leader epoch: lost offsets are used again.
        take_marker(files, directory, sync=True)
        checkpoints.note_salvage(which, plan.end_offset)
        for kept_aside in plan.apply():
            print(f"{which}: the former content is in {kept_aside}")
    if not count:
        print(f"{directory}: no damage in {len(chosen)} partitions")
    return EXIT_DAMAGED if is_dry and count else 0


def _summary(which: TopicPartition, plan: SalvagePlan, verb: str) -> str:
    lost = ", ".join(f"{first}..{last}" for first, last in plan.lost) or "none"
    size = sum(each.bytes_lost for each in plan.segments)
    return (
        f"{which}: {verb} {plan.batch_count} batches up to offset {plan.end_offset}; "
        f"lost offsets: {lost}; {size} damaged bytes"
    )
