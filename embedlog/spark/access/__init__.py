"""A log as a read sees it: in a data directory, or behind brokers."""
