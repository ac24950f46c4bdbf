"""Delivery from a database: each event to each endpoint, at least once and never early."""
