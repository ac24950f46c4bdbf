"""Delivery: an outbox next to a bare SQL loop and to job queues, on PostgreSQL and on SQLite.

| file | has |
|---|---|
| `group.py` | what is measured, and how much of it |
| `places.py` | an empty database for each sample |
| `contest.py` | a queue drained by processes of its own, in turns with the others |
| `tables.py`, `ours.py`, `bare_loop.py` | our tables, the worker, and a loop over the same tables |
| `peers.py` | the job queues, each with its best settings |
| `claims.py`, `flights.py` | what a claim takes beside many rows; the memory of many sends |
"""
