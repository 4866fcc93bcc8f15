"""The migrations of the tables, which Alembic runs (see `retinue.stores.sql.schema`)."""
