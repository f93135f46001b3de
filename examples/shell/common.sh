# Sourced by the other scripts: how they talk to the server and compare replies.
set -euo pipefail

# -e makes redis-cli fail when the server answers an error. Without a terminal it prints the parts
# of a reply as lines: of a task these are queue, id, receipt and payload.
pinpriq() {
    redis-cli -e -h "${PINPRIQ_HOST:-127.0.0.1}" -p "${PINPRIQ_PORT:-7251}" "$@"
}

expect() {
    if [[ $1 != "$2" ]]; then
        echo "expected '$2' and got '$1'" >&2
        exit 1
    fi
}
