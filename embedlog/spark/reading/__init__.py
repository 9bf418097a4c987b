"""Batch and streaming reads of topics: planning, slices, filters, and tables about the log."""
