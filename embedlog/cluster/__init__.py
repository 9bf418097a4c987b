"""A cluster of this process: its brokers, their controller, and the calls of its owner."""
