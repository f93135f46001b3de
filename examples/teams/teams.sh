#!/usr/bin/env bash
# Two teams at one server: makes their users, starts a server with them, and shows what each may do
# and may not, over RESP and HTTP.
#
# usage: examples/teams/teams.sh
#
# Needs pinpriq, redis-cli and curl on the path. Ends with an error if anything is not as it says.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
server=
finish() {
    if [[ -n $server ]]; then
        kill "$server"
        wait "$server" || true
    fi
    rm -rf "$work"
}
trap finish EXIT

"$here/users.sh" "$work/users.toml"
token=$(pinpriq user token payer add machine-1 --users "$work/users.toml" 2>/dev/null)

mkfifo "$work/log"
pinpriq serve --users "$work/users.toml" --data "$work/data" --pinpriq off \
    --resp 127.0.0.1:0 --http 127.0.0.1:0 --log-format json 2>"$work/log" &
server=$!
exec 3<"$work/log"
resp=
http=
while [[ -z $resp || -z $http ]] && read -r line <&3; do
    address=${line##*\"address\":\"}
    case $line in
    *'"door":"resp"'*) resp=${address%%\"*} ;;
    *'"door":"http"'*) http=${address%%\"*} ;;
    esac
done
cat <&3 >/dev/null &

# Sends a command as somebody: the user, the password or token, and the command.
as() {
    redis-cli -u "redis://$1:${2// /%20}@$resp" "${@:3}" 2>/dev/null
}

# Checks that something was answered: the beginning of the answer, and the answer.
expect() {
    echo "$2"
    if [[ $2 != "$1"* ]]; then
        echo "this should begin with: $1" >&2
        exit 1
    fi
}

shop=("shop" "shop and sundries")
bank=("bank" "bank and balance")
ops=("ops" "operate and observe")

echo "==> the shop orders a payment, and cannot look at the bank"
expect 1 "$(as "${shop[@]}" PUT bank.payments '{"order":17}')"
expect "NOPERM" "$(as "${shop[@]}" SCAN bank.payments)"
expect "NOPERM" "$(as "${shop[@]}" TAKE bank.payments)"
expect "NOPERM" "$(as "${shop[@]}" QUEUE DROP bank.payments)"

echo "==> the worker of the bank takes it by its token, and tells the shop"
receipt=$(as payer "$token" TAKE bank.payments TTR 60000 | sed -n 3p)
expect 2 "$(as payer "$token" PUT shop.paid '{"order":17}')"
expect OK "$(as payer "$token" ACK bank.payments "$receipt")"
expect "NOPERM" "$(as payer "$token" PUT bank.payments '{"order":18}')"

echo "==> each team sees its own queues"
as "${shop[@]}" PUT shop.orders '{"order":18}' >/dev/null
as "${bank[@]}" PUT bank.ledger '{"balance":0}' >/dev/null
expect $'0\nshop.orders\nshop.paid' "$(as "${shop[@]}" QUEUE LIST)"
expect $'0\nbank.ledger' "$(as "${bank[@]}" QUEUE LIST)"
expect $'0\nbank.ledger\nshop.orders\nshop.paid' "$(as "${ops[@]}" QUEUE LIST)"

echo "==> an administrator can ask which rights a user lacks"
expect "User shop lacks the right take:bank.payments" \
    "$(as "${ops[@]}" ACL DRYRUN shop TAKE bank.payments)"
expect "NOPERM" "$(as "${shop[@]}" CLIENT LIST)"

# Asks over HTTP: curl's other arguments, and the path.
ask() {
    curl --silent --output /dev/null --write-out '%{http_code}\n' "${@:2}" "http://$http$1"
}

echo "==> the same over HTTP"
expect 200 "$(ask /v1/queues/shop.orders --user "${shop[0]}:${shop[1]}")"
expect 403 "$(ask /v1/queues/bank.ledger --user "${shop[0]}:${shop[1]}")"
expect 403 "$(ask /v1/queues/bank.payments --header "Authorization: Bearer $token")"
expect 401 "$(ask /v1/queues/shop.orders)"
expect 401 "$(ask /v1/queues/shop.orders --user "shop:a guess")"
expect 200 "$(ask /metrics --user "${ops[0]}:${ops[1]}")"

echo "==> a token that is revoked is over at once"
pinpriq user token payer revoke machine-1 --users "$work/users.toml"
kill -HUP "$server"
until [[ $(as payer "$token" TAKE bank.payments) == WRONGPASS* ||
    $(as payer "$token" TAKE bank.payments) == NOAUTH* ]]; do :; done
echo "teams: as it should be"
