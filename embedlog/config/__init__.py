"""Settings under Kafka's own names: which exist, what they take, which are in force.

    definitions.py    the tables, read one row at a time
    types.py          text to value and back, the rules, Kafka's messages
    broker_config.py  `BrokerConfig`: defaults, start-up values and dynamic changes
    topic_config.py   settings of topics; their defaults are settings of the broker
    resources.py      settings of groups and of client metrics subscriptions
    describe.py       what DescribeConfigs says about each

Every setting that embedlog can act on acts; the rest is accepted, checked and described, because
programs set and read them.
"""

from __future__ import annotations

from embedlog.config.broker_config import BrokerConfig

__all__ = ["BrokerConfig"]
