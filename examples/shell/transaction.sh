#!/usr/bin/env bash
# A transaction: a task is done and what follows from it is put, all at one moment or not at all.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# A line for each command, all over one connection, and then the replies to all of them.
finish() {
    printf '%s\n' MULTI \
        "ACK shell-orders $1" \
        "PUT {shell-orders}-invoices '$2'" \
        "PUT {shell-orders}-parcels '$2' PRIORITY 1" \
        EXEC | pinpriq
}

pinpriq PUT shell-orders 'order 17' >/dev/null
mapfile -t task < <(pinpriq TAKE shell-orders TTR 30000)

# OK is for MULTI. Each command is QUEUED, and EXEC has a reply for each of them.
mapfile -t replies < <(finish "${task[2]}" "${task[3]}")
expect "${replies[*]:0:5}" "OK QUEUED QUEUED QUEUED OK"
echo "acknowledged the order, put invoice ${replies[5]} and parcel ${replies[6]}"

# The lease has ended. So the first command is refused, and none of the others happens. redis-cli
# ends with status 0 here, so look at what it prints: the position of the command, and its refusal.
mapfile -t replies < <(finish "${task[2]}" "${task[3]}")
expect "${replies[4]:0:17}" "EXECABORT 1 STALE"

expect "$(pinpriq QUEUE DROP '{shell-orders}-invoices')" 1
expect "$(pinpriq QUEUE DROP '{shell-orders}-parcels')" 1
echo "transaction: ok"
