#!/usr/bin/env bash
# Fan-out: a topic with members, each of which gets everything in a lane of its own.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

take() { pinpriq TAKE news TTR 60000 MEMBER "$1"; }

# A member gets what is published after it has joined. Joining again is harmless.
expect "$(pinpriq PUBLISH news 'nobody listens')" 0
pinpriq JOIN news mailer LEASE 60000 >/dev/null
pinpriq JOIN news archive LEASE 60000 >/dev/null
expect "$(pinpriq PUBLISH news 'the door is open')" 2
expect "$(pinpriq PUBLISH news 'the door is shut')" 2

# One member works through its lane. A receipt names the lane, so ACK needs nothing else.
for news in 'the door is open' 'the door is shut'; do
    mapfile -t task < <(take mailer)
    expect "${task[3]}" "$news"
    expect "$(pinpriq ACK news "${task[2]}")" OK
done
expect "$(take mailer)" ''

# The other member has not taken anything yet, and has lost nothing.
expect "$(take archive | tail -n 1)" 'the door is open'

# A full lane takes no more tasks. It does not delay the other lanes.
pinpriq QUEUE SET news CAPACITY 2 MEMBER archive >/dev/null
expect "$(pinpriq PUBLISH news 'one too many')" 1
expect "$(pinpriq STATS news MEMBER archive | tail -n 1)" 1
expect "$(take mailer | tail -n 1)" 'one too many'

# A member that gives no sign of life during its lease ends, with all its lanes.
pinpriq JOIN news forgotten LEASE 100 >/dev/null
while (($(pinpriq PUBLISH news 'still there?') > 1)); do sleep 0.05; done
expect "$(pinpriq BEAT forgotten 2>&1 | cut -d ' ' -f 1)" NOTFOUND

# LEAVE without a topic ends all lanes of the member.
expect "$(pinpriq LEAVE mailer)" 1
expect "$(pinpriq LEAVE archive)" 1
expect "$(pinpriq MEMBERS news)" ''
echo "fan_out: ok"
