"""Kafka Streams with group.protocol=streams, and the command-line tool for its groups."""
