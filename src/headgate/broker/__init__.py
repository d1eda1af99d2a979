"""The asyncio shell around the engine: listeners, connections, timers, and the admin facade."""
