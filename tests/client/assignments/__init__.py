"""Groups for assignors, and the results of Kafka's assignors."""
