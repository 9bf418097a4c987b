"""Segments: record batches in a mapped file, and the sparse indexes beside it."""
