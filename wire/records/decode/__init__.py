"""Batches to records."""
