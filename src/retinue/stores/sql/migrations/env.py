"""Run by Alembic: migrates over the connection, and in the transaction, that it is given."""

from alembic import context

from retinue.stores.sql.tables import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
