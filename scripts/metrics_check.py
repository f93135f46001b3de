"""Checks for scripts/metrics-check that need more than a shell.

expressions DASHBOARD ALERTS PAGE: every metric that the two name must be in the tables of the page.
Prints the expressions of the dashboard as rules, for promtool.

formats OPEN PLAIN PAGE: two scrapes, one in each format, must be understood by the official parsers,
have the same metrics, only such as the page has, and queues with the names that they were given.
"""

import json
import pathlib
import re
import sys

# What Grafana puts in place of these.
VARIABLES = {"$__rate_interval": "1m", "$instance": ".*", "$queue": ".*"}

# The queues that the script makes, as labels show them.
QUEUES = {"load", 'a"b\\\\c\nd', "\\xff\\xfe", "\\x5fother"}


def names_of(page):
    """The names of all metrics, as the page lists them."""
    text = pathlib.Path(page).read_text()
    return set(re.findall(r"^\| `(pinpriq_[a-z_]+)` \|", text, re.MULTILINE))


def family(name):
    return re.sub(r"_(bucket|sum|count)$", "", name)


def expressions(dashboard, alerts, page):
    known = names_of(page)
    panels = json.loads(pathlib.Path(dashboard).read_text())["panels"]
    told = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    assert len(told) > 20, "the dashboard has few expressions"
    for text in [*told, pathlib.Path(alerts).read_text()]:
        for name in re.findall(r"\bpinpriq_[a-z_]+", text):
            if name not in known and family(name) not in known:
                sys.exit(f"no page lists {name}")
    rules = []
    for at, text in enumerate(told):
        for variable, value in VARIABLES.items():
            text = text.replace(variable, value)
        assert "$" not in text, f"a variable is unknown: {text}"
        rules.append({"record": f"panel:{at}", "expr": text})
    # JSON is YAML.
    print(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))


def formats(open_text, plain_text, page):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
    from prometheus_client.parser import text_string_to_metric_families as read_plain

    def read(path, parser):
        text = pathlib.Path(path).read_bytes().decode("utf-8")
        return {sample.name: found for found in parser(text) for sample in found.samples}, text

    known = names_of(page)
    found = [read(open_text, read_open)[0], read(plain_text, read_plain)[0]]
    for families in found:
        strangers = {name for name in families if name not in known and family(name) not in known}
        if strangers:
            sys.exit(f"the page does not list {strangers}")
        queues = {sample.labels["queue"] for sample in families["pinpriq_tasks"].samples}
        if not QUEUES <= queues:
            sys.exit(f"these queues are missing: {QUEUES - queues}")
        for name, of in families.items():
            if not of.documentation:
                sys.exit(f"{name} has no meaning")
    # Requests over HTTP made between the two may have made a refusal or a command appear.
    if set(found[0]) ^ set(found[1]):
        sys.exit(f"only one format has {set(found[0]) ^ set(found[1])}")
    for name, of in found[0].items():
        if of.type != found[1][name].type and of.type != "info":
            sys.exit(f"{name} is of type {of.type} and {found[1][name].type}")
    print(f"both formats have the same {len(found[0])} names")


commands = {"expressions": expressions, "formats": formats}
commands[sys.argv[1]](*sys.argv[2:])
