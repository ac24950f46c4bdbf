"""What SQLite and PostgreSQL need, written once: connections, transactions, time and migrations.

Statements are written once for both. In a statement `?` is a value, and these words in braces
become what the database calls them:

- `{now}`: microseconds since the epoch, read when the statement gets there. `{as_of}`: the same,
  read when it begins, so that an index can serve the comparison.
- `{prefix}`: stands before a table's name.
- `{key}`, `{big}`, `{real}`, `{bytes}`: types. `{clustered}`: a table in the order of its key.
- `{among}`: stands between a column and a list of numbers, which `numbers` hands over.
- `{lock}`, `{lock_free}`: lock the rows of `g`, all of them or those that nobody holds.
  `{take_free}`: lock the rows that nobody holds. Empty in SQLite, where a writer holds the only
  lock.
"""
