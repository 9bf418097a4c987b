"""Job queues over share groups: `cluster.queue("jobs")`.

A queue is a topic and a share group of one name. Jobs are the records of the topic, and any share
consumer of the group may work on them. What Kafka has no place for lies in topics beside it:

    jobs            ready jobs; `jobs.p1` and so on if the queue has priorities
    jobs.delayed    jobs for later, compacted by the job's id: see `delays`
    dlq.jobs        jobs that were given up, with the reason
    jobs.replies    results of jobs whose maker wants them
"""
