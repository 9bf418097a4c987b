"""The value of a degradation."""

from embedlog.storage.degradation import READ_ONLY, Degradation


def test_a_degradation_says_what_since_when_and_why() -> None:
    found = Degradation(READ_ONLY, "orders-0", since_ms=1_000, reason="Input/output error")
    assert (found.kind, found.subject) == ("read-only", "orders-0")
    assert (found.since_ms, found.reason) == (1_000, "Input/output error")
    assert str(found) == "read-only: orders-0: Input/output error"
    assert repr(found).startswith("Degradation('read-only', 'orders-0', since_ms=1000")
    assert found == Degradation(READ_ONLY, "orders-0", since_ms=1_000, reason="Input/output error")
