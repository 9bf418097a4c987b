"""A consumer's group: membership by both protocols, and committed offsets."""
