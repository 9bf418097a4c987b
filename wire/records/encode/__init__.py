"""Encoding records as batches."""
