"""Kafka's messages as declarations, one file per API: data only, no logic.

Import the file of the API you need, or ask `wire.registry`.
"""
