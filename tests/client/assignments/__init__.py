"""Groups for assignors, and what Kafka's make of them."""
