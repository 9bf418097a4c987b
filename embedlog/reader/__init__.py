"""Read a data directory that another process has open, without a lock."""
