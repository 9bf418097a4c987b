"""Runs of a pipeline: streams and replays, their state, positions and metrics."""
