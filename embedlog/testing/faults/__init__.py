"""Fault rules of the test kit: their matchers, triggers and actions.

Kafka.fault -> Faults -> FaultRule     matching  does a request belong to the rule?
                                       trigger   does the rule act this time?
                                       actions   an error, a cut, a delay, another answer
request -> RuleStage -> the rules that may match, one around another -> Broker
"""
