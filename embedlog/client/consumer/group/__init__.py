"""A consumer's group: membership in the classic and the consumer protocol, committed offsets."""
