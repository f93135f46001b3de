"""The client without asyncio. A build makes what is not in Git: see `tools/make_sync.py`."""
