"""Functions that combine pending answers, and that turn an error into an answer for the client."""

from __future__ import annotations

from embedlog.coordinator.append_errors import as_coordinator_error
from embedlog.errors import EmbedlogError, KafkaError
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")
    R = TypeVar("R")
else:
    T = R = None


def answered(pending: Pending[T], refused: Callable[[KafkaError], T]) -> T | Pending[T]:
    """Return the answer of `pending` if it is done, else a pending answer.

    A failure becomes the answer `refused(error)`.
    """
    if pending.done():
        return _answer_of(pending, refused)
    answer: Pending[T] = Pending()

    def settled(done: Pending[T]) -> None:
        error = done.error()
        if error is None or isinstance(error, EmbedlogError):
            answer.complete(_answer_of(done, refused))
        else:
            answer.fail(error)

    pending.add_callback(settled)
    return answer.result() if answer.done() else answer


def _answer_of(done: Pending[T], refused: Callable[[KafkaError], T]) -> T:
    error = done.error()
    return (
        refused(as_coordinator_error(error)) if isinstance(error, EmbedlogError) else done.result()
    )


def then(pending: Pending[T], make: Callable[[T], R | Pending[R]]) -> Pending[R]:
    """Return a pending of `make(answer)`; it fails with the error of `pending`.

    `make` may return a pending itself, or raise EmbedlogErrors.
    """
    made: Pending[R] = Pending()

    def settled(done: Pending[T]) -> None:
        error = done.error()
        if error is not None:
            made.fail(error)
            return
        try:
            answer = make(done.result())
        except EmbedlogError as refusal:
            made.fail(refusal)
            return
        made.follow(answer)

    pending.add_callback(settled)
    return made


def combined(answers: Sequence[T | Pending[T]], combine: Callable[[list[T]], R]) -> R | Pending[R]:
    """Return `combine(answers)`, or a pending of it that completes with the last answer."""
    waiting = [answer for answer in answers if isinstance(answer, Pending)]
    if not waiting:
        return combine(list(answers))  # type: ignore[arg-type]
    whole: Pending[R] = Pending()
    missing = [*waiting]

    def arrived(_done: Pending[Any]) -> None:
        # Count down, in any thread: checking all answers at each arrival would be quadratic.
        missing.pop()
        if not missing:
            # Two threads with the last two answers may both come here; the first result stays.
            whole.complete(
                combine(
                    [
                        answer.result() if isinstance(answer, Pending) else answer
                        for answer in answers
                    ]
                )
            )

    for answer in waiting:
        answer.add_callback(arrived)
    return whole.result() if whole.done() else whole


def failed(error: EmbedlogError) -> Pending[Any]:
    """Return a pending that has failed with `error`."""
    pending: Pending[Any] = Pending()
    pending.fail(error)
    return pending
