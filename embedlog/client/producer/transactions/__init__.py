"""Sequences, so that a batch counts once, and transactions, so that several batches count
as one."""
