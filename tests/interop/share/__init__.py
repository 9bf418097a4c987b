"""Share groups of real clients: confluent-kafka, franz-go, and Kafka's Java tools.

GROUPS_BROKER (`tests.interop.groups.serving`) chooses another broker to test the tests.
"""
