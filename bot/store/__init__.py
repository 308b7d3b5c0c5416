"""The only room with SQL: named queries, migrations, connections, one module per table family."""
