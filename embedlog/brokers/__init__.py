"""The brokers of one cluster of this process, and all that is between them."""
