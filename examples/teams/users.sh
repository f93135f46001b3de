#!/usr/bin/env bash
# Makes the users of two teams that share a server: a shop, and a bank that it pays through.
#
# usage: examples/teams/users.sh FILE
#
# The passwords here are for trying. `pinpriq user add` asks for one where there is a terminal.
set -euo pipefail
export PINPRIQ_USERS=$1

# The shop has all queues that begin with shop., and may order payments of the bank.
echo "shop and sundries" | pinpriq user add shop \
    'put:shop.*' 'take:shop.*' 'look:shop.*' 'manage:shop.*' 'put:bank.payments'

# The bank has its own. It tells the shop what became of a payment.
echo "bank and balance" | pinpriq user add bank \
    'put:bank.*' 'take:bank.*' 'look:bank.*' 'manage:bank.*' 'put:shop.paid'

# A worker of the bank does one thing, and signs in by a token of its machine.
pinpriq user add payer 'take:bank.payments' 'put:shop.paid' --no-password

# Administrators see all queues, and touch none of the tasks.
echo "operate and observe" | pinpriq user add ops admin 'look:*'
