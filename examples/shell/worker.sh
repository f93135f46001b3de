#!/usr/bin/env bash
# A worker that renews its leases, retries failed tasks later, and buries those that always fail.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

ttr_ms=1000
attempts_max=3

# The work itself. It fails with a status other than 0.
handle() {
    case $1 in
        broken) return 1 ;;
        flaky) (($2 >= 2)) ;;
        # Longer than the lease would last by itself: until it has been renewed twice.
        slow) for _ in 1 2; do read -r -t 60 <&"$renewals"; done ;;
    esac
}

# Renews a lease until it is killed. A receipt is good on any connection.
keep() {
    while sleep 0.3 && pinpriq TOUCH "$1" "$2"; do :; done
}

work_on() {
    local queue=$1 id=$2 receipt=$3 payload=$4 attempts=$5 keeper renewals
    exec {renewals}< <(keep "$queue" "$receipt")
    keeper=$!
    if handle "$payload" "$attempts"; then
        pinpriq ACK "$queue" "$receipt" >/dev/null
        ended="$payload acked"
    elif ((attempts >= attempts_max)); then
        # It stays until somebody looks at it: DIG or PLOW brings it back.
        pinpriq BURY "$queue" "$receipt" REASON "cannot do $payload" >/dev/null
        ended="$payload buried"
    else
        # Try again later, with a longer delay each time.
        pinpriq RELEASE "$queue" "$receipt" DELAY $((20 * attempts)) >/dev/null
        ended="$payload released"
    fi
    kill "$keeper"
    exec {renewals}<&-
}

for payload in fine flaky slow broken; do pinpriq PUT shell-jobs "$payload" >/dev/null; done

all=()
finished=0
while ((finished < 4)); do
    # A lease with a TTR outlives the connection of each redis-cli.
    mapfile -t task < <(pinpriq TAKE shell-jobs WAIT 30000 TTR "$ttr_ms")
    attempts=$(pinpriq GET shell-jobs "${task[1]}" | sed -n '/^attempts$/{n;p}')
    work_on "${task[@]}" "$attempts"
    echo "$ended"
    all+=("$ended")
    [[ $ended == *released ]] || finished=$((finished + 1))
done

expect "$(printf '%s\n' "${all[@]}" | sort | tr '\n' ',')" \
    "broken buried,broken released,broken released,fine acked,flaky acked,flaky released,slow acked,"
expect "$(pinpriq PEEK shell-jobs STATE B | tail -n 1)" broken
expect "$(pinpriq QUEUE DROP shell-jobs)" 1
echo "worker: ok"
