"""The client without asyncio. All files but `link.py` and `heartbeat.py` are made by a tool."""
