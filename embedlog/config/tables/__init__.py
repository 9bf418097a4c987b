"""The settings as text. A new setting is a row here; `embedlog.config.definitions` has the format.

    a new setting of          its row goes into
    a topic                   topic.py, with its own default. If a broker setting is to give the
                              default, that one has a row as well, and both names go into
                              `embedlog.config.topic_synonyms`
    a topic and a broker,     broker_and_topic.py: one row for both, and the name goes into
    under the same name       `embedlog.config.topic_synonyms`
    a group                   group.py. If a broker setting gives the default, that one goes into
                              broker_coordinators.py, and both names into
                              `embedlog.config.resources`
    a client metrics          client_metrics.py
    subscription
    a broker                  the broker_*.py of its area:
                              broker_log           topics, logs, data directories, metadata log
                              broker_network       listeners, requests, quotas, metrics
                              broker_coordinators  groups, transactions, their internal topics
                              broker_cluster       controller, replication, tiered storage
                              broker_security      TLS, SASL, authorization

Names of settings that only embedlog has begin with `embedlog.`; they are in the table of their area
and in `docs/operation.md`.
"""
