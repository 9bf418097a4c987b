"""Tidying a log's directory before it is read, and moving suspect bytes to quarantine.

Leftovers of an interrupted process:

    *.deleted, *.tmp, *.cleaned        removed: never part of the log
    copied-here                        removed: the log is opened here, so it is in this directory
    *.swap                             compaction's finished output: replaces the segments whose
                                       offsets it covers
    an index without its log file      removed
"""

from __future__ import annotations

from embedlog.runtime.files import Files, read_view, write_whole
from embedlog.storage import paths
from embedlog.storage.batch_walk import walk
from embedlog.storage.segments.scan import is_zeros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.segments.segment import Segment

_LEFTOVERS = (paths.DELETED, paths.TEMPORARY, paths.CLEANED, paths.COPIED_HERE)


def sweep_directory(files: Files, directory: str) -> list[int]:
    """Remove leftovers and complete a swap; return the segments' base offsets, in order."""
    names = files.list(directory)
    for name in names:
        if name.endswith(_LEFTOVERS) and paths.is_of_a_log(name):
            files.remove(f"{directory}/{name}")
    if any(name.endswith(paths.SWAP) for name in names):
        _complete_swap(files, directory)
        names = files.list(directory)
    bases = paths.segment_bases(names)
    known = set(bases)
    for name in names:
        offset = paths.parse_offset(name)
        if name.endswith(paths.SIDECARS) and offset is not None and offset not in known:
            files.remove(f"{directory}/{name}")
    return bases


def quarantine_tail(files: Files, segment: Segment) -> None:
    """Copy the bytes behind the segment's end to a quarantine file, then cut them off."""
    position = segment.size
    tail = segment.file.view(position, segment.file.capacity)
    if len(tail) and not is_zeros(tail):
        path = paths.quarantine_file(segment.file.directory, segment.base_offset, position)
        write_whole(files, path, tail, sync=True)
    segment.file.cut_to(segment.size)
    segment.sync()


def quarantine_segments(files: Files, segments: list[Segment]) -> None:
    """Move whole segments to quarantine, the last one first; remove a segment of zeros."""
    for segment in reversed(segments):
        path = segment.path
        segment.file.release()
        if is_zeros(read_view(files, path)):
            segment.file.remove()
            continue
        # The rename takes the segment out: after a crash the next open removes its indexes.
        quarantine = paths.quarantine_file(segment.file.directory, segment.base_offset, 0)
        files.rename(path, quarantine)
        segment.file.remove()


def _complete_swap(files: Files, directory: str) -> None:
    """Put compaction's output in place of the segments from which it was made."""
    names = files.list(directory)
    swapped = sorted(name for name in names if name.endswith(paths.LOG + paths.SWAP))
    if swapped:
        bases = [paths.parse_offset(name) or 0 for name in swapped]
        first, end = bases[0], bases[-1]
        path = f"{directory}/{swapped[-1]}"
        view = read_view(files, path)
        for _, _, _, last_offset, _, _ in walk(view, 0, len(view), path):
            end = last_offset + 1
        for name in names:
            offset = paths.parse_offset(name)
            if offset is None or not first <= offset < max(end, first + 1):
                continue
            if name.endswith((paths.LOG, *paths.SIDECARS)):
                files.remove(f"{directory}/{name}")
    for name in names:
        if name.endswith(paths.SWAP):
            files.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(paths.SWAP)}")
