#!/usr/bin/env bash
# A task with a delay, and a task with a time to live.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Nobody gets the task before the delay is over; a blocking take is woken then.
id=$(pinpriq PUT reminders tea DELAY 200)
expect "$(pinpriq POP reminders)" ""
expect "$(pinpriq PEEK reminders STATE W | sed -n 2p)" "$id"
expect "$(pinpriq POP reminders WAIT 30000 | tail -n 1)" tea

# A task that nobody took in time is dropped, and clients that wait for it are told.
expect "$(pinpriq PUT reminders 'too late' TTL 50 WAIT 30000 | tail -n 1)" expired
echo "delayed: ok"
