"""The fleet's history: what hosts were asked for over SSH, kept in SQLite or PostgreSQL."""
