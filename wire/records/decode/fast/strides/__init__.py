"""Fields an even distance apart, taken as columns."""
