"""The consumer: what it reads, where it is, and the fetches that bring it."""
