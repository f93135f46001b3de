"""The client for asyncio. A build makes most of `pinpriq.sync` from these files."""
