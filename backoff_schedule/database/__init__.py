"""What SQLite and PostgreSQL need, written once: connections, transactions, time and migrations.

Statements are written once for both. In a statement, `?` is a value, and these words in braces
become what the database calls them: `{now}` (microseconds since the epoch, read when the statement
gets there), `{as_of}` (the same, read when it begins, so that an index can serve the comparison),
`{prefix}` (before a table's name), and the types `{key}`, `{big}`, `{real}`, `{bytes}`.
"""
