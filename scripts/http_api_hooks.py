"""What schemathesis does not know about the HTTP API: lines of JSON, and which names lead somewhere.

Loaded by scripts/http-api through SCHEMATHESIS_HOOKS.
"""

import json

import schemathesis

# A few names, so that requests meet queues, members and schedules that others have made.
NAMES = ["a", "b", "c"]


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    """Sends a text as it is, and anything else as one line."""
    if isinstance(value, (bytes, str)):
        return value.encode() if isinstance(value, str) else value
    return json.dumps(value).encode() + b"\n"


@schemathesis.deserializer("application/x-ndjson")
def read_lines(context, response):
    """Every line of an answer is an object."""
    return [json.loads(line) for line in response.content.splitlines()]


@schemathesis.deserializer("application/octet-stream")
def read_bytes(context, response):
    """A payload may be anything."""
    return response.content.decode("latin-1")


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Makes most names some of a few."""
    for name, value in (path_parameters or {}).items():
        if name in ("queue", "topic", "member", "schedule") and isinstance(value, str):
            if len(value) % 4 != 3:
                path_parameters[name] = NAMES[len(value) % 3]
        elif name == "id" and len(str(value)) % 2:
            path_parameters[name] = str(len(str(value)))
    return path_parameters


@schemathesis.hook
def map_query(context, query):
    """Shortens all waits."""
    if isinstance(query, dict):
        for name in ("wait", "room"):
            if isinstance(query.get(name), int) and (query[name] > 10 or query[name] < 0):
                query[name] = 1
    return query


@schemathesis.hook
def map_body(context, body):
    """Shortens all waits."""
    if isinstance(body, dict):
        for name in ("wait", "room"):
            if isinstance(body.get(name), int) and (body[name] > 10 or body[name] < 0):
                body[name] = 1
    return body
