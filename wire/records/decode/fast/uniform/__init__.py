"""Batches of records of one size, compared whole."""
