"""Several processes, one data directory: one process has it open, the others connect to it."""
