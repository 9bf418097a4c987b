"""Commits of staged files: the committer's part (`hand_over`) and the owner's (`desk`, `work`)."""
