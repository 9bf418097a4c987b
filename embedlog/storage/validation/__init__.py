"""From a produced record set to a batch that a leader may write, or Kafka's error for it.

the checks, in Kafka's order           `validator`, `record_set`, `errors`
batches that need few comparisons      `ordinary_batch`
rebuilding batches                     `conversion`
the result                             `validated_batch`
"""
