"""The client for asyncio. The package `pinpriq.sync` is made from these files by a tool."""
