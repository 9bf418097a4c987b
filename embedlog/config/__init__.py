"""Settings by Kafka's own names: their definitions, their values, their descriptions.

    definitions.py    the tables, read one row at a time
    types.py          text to value and back, the rules, Kafka's messages
    broker_config.py  `BrokerConfig`: defaults, start-up values and dynamic changes
    topic_config.py   settings of topics; their defaults are settings of the broker
    resources.py      settings of groups and of client metrics subscriptions
    describe.py       the answers of DescribeConfigs

Every setting that can have an effect in embedlog has it. The rest are accepted, checked and
described, because programs set and read them.
"""

from __future__ import annotations

from embedlog.config.broker_config import BrokerConfig

__all__ = ["BrokerConfig"]
