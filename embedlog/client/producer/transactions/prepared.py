"""The identity of a prepared transaction, to be stored until the other side has decided."""

from __future__ import annotations

from embedlog.common import item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class PreparedTransaction(tuple[int, int]):
    """The result of `Producer.prepare_transaction`: (producer id, epoch).

    Store its text, `str(prepared)`, beside the decision of the other side of a two-phase commit;
    `PreparedTransaction.parse` reads it again.

    >>> str(embedlog.PreparedTransaction(1000, 7))
    '1000:7'
    """

    __slots__ = ()

    def __new__(cls, producer_id: int, producer_epoch: int) -> PreparedTransaction:
        return tuple.__new__(cls, (producer_id, producer_epoch))

    @classmethod
    def parse(cls, text: str) -> PreparedTransaction:
        """Parse `str(prepared)`; an empty text gives a value that equals no prepared transaction.

        >>> embedlog.PreparedTransaction.parse("1000:7").producer_epoch
        7

        Raises:
            ValueError: the text has another form.
        """
        if not text:
            return cls(-1, -1)
        producer_id, _, epoch = text.partition(":")
        if not producer_id.isdecimal() or not epoch.isdecimal():
            raise ValueError(f"{text!r} is no prepared transaction: expected 'producer id:epoch'")
        return cls(int(producer_id), int(epoch))

    def __getnewargs__(self) -> tuple[int, int]:
        return self[0], self[1]

    producer_id: Final[int] = item(0, "Of the producer that prepared it.")
    producer_epoch: Final[int] = item(1, "Of the producer that prepared it.")

    def __str__(self) -> str:
        return f"{self[0]}:{self[1]}" if self[0] >= 0 else ""

    def __repr__(self) -> str:
        return f"PreparedTransaction({self[0]}, {self[1]})"
