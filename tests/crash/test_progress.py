"""A run in pieces gives the same result as one run."""

from __future__ import annotations

from pathlib import Path

from tests.crash.progress import Progress
from tests.crash.report import Options, Report


def _tried(number: int) -> tuple[Report, list[int]]:
    """A workload that shares images with the one before; one image is broken."""
    part = Report("images", Options(seed=5, count=0))
    part.add("workloads")
    part.add("images opened", 4)
    if number == 3:
        part.failures.append("broken")
        part.failure_count = 1
    return part, [number, number + 1, number + 1, (1 << 64) - number - 1]


def _run(options: Options, workload_count: int) -> Progress:
    progress = Progress("images", options)
    for number in range(progress.workloads, progress.workloads + workload_count):
        progress.add(*_tried(number))
    progress.save()
    return progress


def test_pieces_give_the_sum_of_one_run(tmp_path: Path) -> None:
    whole = _run(Options(seed=5, count=0), 6)
    assert whole.report.figures["images"] == 13
    assert whole.report.figures["images opened"] == 24
    options = Options(seed=5, count=0, progress=str(tmp_path / "progress"))
    _run(options, 4)
    last = _run(options._replace(seed=9), 2)  # the file knows its seed
    assert last.workloads == 6
    assert last.report.options.seed == 5
    assert last.report.figures == whole.report.figures
    assert (last.report.failure_count, last.report.failures) == (1, ["broken"])


def test_an_image_counts_once_even_if_a_crash_lost_the_sum(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    options = Options(seed=5, count=0, progress=str(path))
    _run(options, 2)
    saved = path.read_bytes()
    _run(options, 2)
    path.write_bytes(saved)
    again = _run(options, 2)
    assert again.workloads == 4
    assert again.report.figures["images"] == 5
