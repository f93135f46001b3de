#!/usr/bin/env bash
# A priority queue with two ends.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

push() { pinpriq PUT both-ends "$1" PRIORITY "$2" >/dev/null; }
pop() { pinpriq POP both-ends FROM "$1" | tail -n 1; }
peek() { pinpriq PEEK both-ends FROM "$1" | tail -n 1; }

for value in a1 a2 a3 a4; do push "$value" 1; done
push c 2
push e 3
push d 4
push b 5
expect "$(peek MIN)" a1
expect "$(peek MAX)" b
# From the top the highest number comes first, and within it the newest.
for value in b d e c a4 a3; do expect "$(pop MAX)" "$value"; done
# From the bottom the lowest number comes first, and within it the oldest.
for value in a1 a2 ''; do expect "$(pop MIN)" "$value"; done
echo "both_ends: ok"
