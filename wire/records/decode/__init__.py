"""Decoding batches to records."""
