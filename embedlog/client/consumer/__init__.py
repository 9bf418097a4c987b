"""The consumer: subscription, positions and fetches; `group/` has its membership and commits."""
