"""Settings by Kafka's own names: their definitions, their values, their descriptions.

    tables/           all settings as text; its `__init__.py` says where a new one goes
    definitions.py    finds a setting in the tables and parses its row
    types.py          text to value and back, the rules for values, Kafka's error messages
    broker_config.py  `BrokerConfig`: defaults, start-up values and dynamic changes
    topic_config.py   settings of topics; their defaults are settings of the broker
    resources.py      settings of groups and of client metrics subscriptions
    describe.py       the answers of DescribeConfigs

Every setting of Kafka that can have an effect in embedlog has it. The other settings are accepted,
checked and described, because programs set and read them.
"""

from __future__ import annotations

from embedlog.config.broker_config import BrokerConfig

__all__ = ["BrokerConfig"]
