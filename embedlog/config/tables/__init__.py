"""The settings as text. A new setting is a row here; `embedlog.config.definitions` has the format.

    a new setting of          its row goes into
    a topic                   topic.py. It is also a field of `LogConfig`, or a member of
                              NOT_OF_A_LOG in `embedlog.config.topic_config`
    a topic, and of a broker  broker_and_topic.py, one row for both; the name also goes into
    as the default            `embedlog.config.topic_synonyms`
    a group                   group.py. If a broker setting gives the default, its row is in
                              broker_coordinators.py, and `embedlog.config.resources` joins the two
    a client metrics          client_metrics.py
    subscription
    a broker                  the file of its area:
                              broker_log           topics, logs, data directories, metadata log
                              broker_network       listeners, requests, quotas, metrics
                              broker_coordinators  groups, transactions, their internal topics
                              broker_cluster       controller, replication, tiered storage
                              broker_security      TLS, SASL, authorization

Names of settings that only embedlog has begin with `embedlog.`; they are in the table of their area
and in `docs/operation.md`.
"""
