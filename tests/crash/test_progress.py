"""A run in pieces comes to what a run in one comes to."""

from __future__ import annotations

from pathlib import Path

from tests.crash.progress import Progress
from tests.crash.report import Options, Report


def _tried(number: int) -> tuple[Report, list[int]]:
    """A workload whose images are in part those of the one before; one of them is broken."""
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


def test_pieces_come_to_the_sum_of_a_run_in_one(tmp_path: Path) -> None:
    whole = _run(Options(seed=5, count=0), 6)
    assert whole.report.figures["images"] == 13
    assert whole.report.figures["images opened"] == 24
    options = Options(seed=5, count=0, progress=str(tmp_path / "progress"))
    _run(options, 4)
    last = _run(options._replace(seed=9), 2)  # the file says which seed it is
    assert last.workloads == 6
    assert last.report.options.seed == 5
    assert last.report.figures == whole.report.figures
    assert (last.report.failure_count, last.report.failures) == (1, ["broken"])


def test_an_image_is_counted_once_though_it_was_saved_and_its_sum_was_not(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    options = Options(seed=5, count=0, progress=str(path))
    _run(options, 2)
    saved = path.read_bytes()
    _run(options, 2)
    path.write_bytes(saved)
    again = _run(options, 2)
    assert again.workloads == 4
    assert again.report.figures["images"] == 5
