"""Pauses between the tries of a failing job, for `Queue.worker`.

queue.worker(backoff=exponential(1, 60))        # 1, 2, 4 ... at most 60 seconds
queue.worker(backoff=lambda failures: 5 * failures)
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Backoff = Callable[[int], float]
    """Seconds before the next try, after a number of failures (1 at the first)."""


def exponential(first: float = 1.0, longest: float = 300.0, *, factor: float = 2.0) -> Backoff:
    """Return pauses that begin with `first` seconds and grow by `factor` up to `longest`.

    >>> pause = exponential(1, 10)
    >>> [pause(failures) for failures in range(1, 6)]
    [1.0, 2.0, 4.0, 8.0, 10.0]

    Raises:
        ValueError: the pauses would be negative or shrink.
    """
    if not 0 <= first <= longest or factor < 1:
        raise ValueError(
            f"exponential({first!r}, {longest!r}, factor={factor!r}): expected "
            "0 <= first <= longest and factor >= 1"
        )

    def pause(failures: int) -> float:
        exponent = min(failures - 1, 64)  # a float has no larger powers of large factors
        return min(float(longest), float(first) * factor**exponent)

    return pause
