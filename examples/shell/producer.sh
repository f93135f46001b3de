#!/usr/bin/env bash
# Puts tasks into a queue.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

echo "put task $(pinpriq PUT shell-mails 'to: ann')"
# A lower number is more urgent; a TTL drops a task that was not taken.
pinpriq PUT shell-mails 'to: bob' PRIORITY -1 >/dev/null
pinpriq PUT shell-mails 'to: eve' PRIORITY 9 TTL 60000 >/dev/null

# -x reads the last argument from the standard input, whatever bytes it has.
printf 'two\nlines' | pinpriq -x PUT files >/dev/null
expect "$(pinpriq POP files | tail -n 2)" $'two\nlines'

# A line for each command, all over one connection.
for number in {1..100}; do echo "PUT numbers $number"; done | pinpriq >/dev/null
expect "$(pinpriq POP numbers COUNT 1000 | grep -c numbers)" 100

expect "$(pinpriq PEEK shell-mails | tail -n 1)" 'to: bob'
expect "$(pinpriq QUEUE DROP shell-mails)" 3
echo "producer: ok"
