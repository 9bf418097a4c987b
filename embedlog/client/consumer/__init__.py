"""The consumer: subscription, positions, fetches. `group/` handles group membership and commits."""
