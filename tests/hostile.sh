#!/usr/bin/env bash
# Tools of others against a running node: testssl.sh, h2load and sqlsmith. The floods are a test: `timing/hostile.rs`, docs/testing.md.
#
#   tests/hostile.sh [BINARY]      default: target/dist/sextant
#
# The tools are Debian packages: apt-get install testssl.sh nghttp2-client sqlsmith. One that is not installed is left out, and said so.
set -euo pipefail
cd "$(dirname "$0")/.."
BINARY=$(realpath "${1:-target/dist/sextant}")
WORK=$(mktemp -d)
trap 'kill "$NODE" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$WORK"' EXIT
NODE=

start() { # flags
    [ -z "$NODE" ] || { kill "$NODE"; wait "$NODE" || true; }
    : >"$WORK/ready"
    rm -rf "$WORK/data"
    "$BINARY" dev --data "$WORK/data" --nodes 1 --sql-port 0 --grpc-port 0 --http-port 0 "$@" >"$WORK/ready" 2>"$WORK/log" &
    NODE=$!
    for _ in $(seq 300); do
        grep -q ^ready "$WORK/ready" && return
        sleep 0.1
    done
    echo "the node does not start:" >&2
    cat "$WORK/log" >&2
    exit 1
}
address() { sed -n "s/.* $1=\([^ ]*\).*/\1/p" "$WORK/ready"; }
has() { command -v "$1" >/dev/null 2>&1 || { echo "$1 is not installed: left out"; return 1; }; }
alive() { kill -0 "$NODE" || { echo "the node has ended after $1" >&2; cat "$WORK/log" >&2; exit 1; }; }

step() { printf '\n== %s (%ss)\n' "$1" "$SECONDS"; }

if has testssl; then
    start --auth scram --tls
    step "testssl.sh: HTTP"
    testssl --quiet --color 0 --warnings off -p -s -f -U "https://$(address http)" | tee "$WORK/http" || true
    step "testssl.sh: PostgreSQL"
    testssl --quiet --color 0 --warnings off -p -s -f -U --starttls postgres "$(address sql)" | tee "$WORK/sql" || true
    alive testssl.sh
    if grep -E ' (VULNERABLE|NOT ok)' "$WORK/http" "$WORK/sql" | grep -vE 'chain|trust|Trust'; then
        echo "testssl.sh has found something" >&2
        exit 1
    fi
fi

start
if has h2load; then
    step "h2load"
    h2load -n 100000 -c 100 -m 50 "http://$(address grpc)/grpc.health.v1.Health/Check" | tail -12
    alive h2load
fi
if has sqlsmith; then
    # It reads PostgreSQL's catalogue first, which has no rows here, and may end early.
    step "sqlsmith"
    sql=$(address sql)
    timeout 60 sqlsmith --max-queries=5000 "--target=host=${sql%:*} port=${sql#*:} user=a dbname=a" 2>&1 | tail -5 || true
    alive sqlsmith
fi
step "the node has lived through it"
