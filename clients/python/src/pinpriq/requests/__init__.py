"""Requests as values: the words to send, and how to read the reply. Nothing here does I/O."""
