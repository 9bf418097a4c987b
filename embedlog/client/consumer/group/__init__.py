"""A consumer and its group: membership by either protocol, and the offsets stored there."""
