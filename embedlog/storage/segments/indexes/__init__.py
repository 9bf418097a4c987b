"""The three indexes of a segment, in Kafka's formats: `offset`, `time` and `transaction`."""
