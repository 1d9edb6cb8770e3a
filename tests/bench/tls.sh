#!/usr/bin/env bash
# The cost of TLS: prepared scans of 100 rows as a user with a password, without and with TLS, by Sextant and by PostgreSQL in turns.
#
#   tests/bench/tls.sh [BINARY] [SECONDS]      default: target/dist/sextant, 5 s for each figure
#
# The servers have one processor and the client another one, as on two machines: on the same one, the client's own encryption takes time
# and caches from the server. CPU is the server's processor time of one scan in microseconds, from /proc. It needs two processors,
# psql, pgbench, openssl and the programs of a PostgreSQL server.
set -euo pipefail
cd "$(dirname "$0")/../.."
BINARY=$(realpath "${1:-target/dist/sextant}")
SECONDS_EACH=${2:-5}
PG=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
WORK=$(mktemp -d)
PIDS=()
stop_all() {
    kill "${PIDS[@]}" 2>/dev/null || true
    [ ! -d "$WORK/pg/data" ] || as_postgres "$PG/pg_ctl -D $WORK/pg/data -m fast -w stop >/dev/null" || true
    wait 2>/dev/null || true
    rm -rf "$WORK"
}
trap stop_all EXIT

start_sextant() { # name, flags
    taskset -c 0 "$BINARY" dev --data "$WORK/$1" --sql-port 0 --grpc-port 0 --http-port 0 --auth scram "${@:2}" >"$WORK/$1.ready" 2>"$WORK/$1.log" &
    PIDS+=($!)
    for _ in $(seq 300); do
        grep -q ^ready "$WORK/$1.ready" && break
        sleep 0.1
    done
    local address password
    address=$(sed -n 's/.* sql=\([^ ]*\).*/\1/p' "$WORK/$1.ready")
    password=$(sed -n 's/.* admin=admin:\([^ ]*\).*/\1/p' "$WORK/$1.ready")
    echo "host=127.0.0.1 port=${address#*:} user=admin dbname=x password=$password"
}
as_postgres() { if [ "$(id -u)" = 0 ]; then su postgres -c "$1"; else bash -c "$1"; fi; }

start_sextant plain >"$WORK/plain.at"
start_sextant tls --tls >"$WORK/tls.at"
PLAIN="$(cat "$WORK/plain.at") sslmode=disable"
TLS="$(cat "$WORK/tls.at") sslmode=require"
mkdir "$WORK/pg"
[ "$(id -u)" != 0 ] || { chown postgres "$WORK/pg"; chmod 755 "$WORK"; }
as_postgres "cd $WORK/pg && $PG/initdb -D data -U admin -A trust >/dev/null && cd data \
    && openssl req -new -x509 -days 9 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj /CN=localhost -keyout server.key -out server.crt 2>/dev/null \
    && chmod 600 server.key && taskset -c 0 $PG/pg_ctl -D . -o '-p 25432 -k $WORK/pg -c ssl=on' -l log -w start >/dev/null"
POSTMASTER=$(head -1 "$WORK/pg/data/postmaster.pid")
POSTGRES="host=127.0.0.1 port=25432 user=admin dbname=postgres"

for n in $(seq 0 199999); do printf '{"id":"k%08d","n":%d}\n' "$n" $((n * 7919 % 200000)); done >"$WORK/rows"
for at in "$PLAIN" "$TLS"; do
    psql -qX "$at" -c 'CREATE BUCKET docs' -c "\\copy docs FROM $WORK/rows (FORMAT jsonl)" -c 'CREATE INDEX by_n ON docs (n::int8)'
done
psql -qX "$POSTGRES" -c "CREATE TABLE by_n(id text PRIMARY KEY, n bigint)" \
    -c "INSERT INTO by_n SELECT 'k' || lpad(i::text, 8, '0'), i * 7919 % 200000 FROM generate_series(0, 199999) i" \
    -c "CREATE INDEX ON by_n(n) INCLUDE (id)" -c "VACUUM ANALYZE by_n"
printf '\\set a random(0, 199900)\n\\set b :a + 100\nSELECT id, n FROM by_n WHERE n >= :a AND n < :b ORDER BY n;\n' >"$WORK/scan.sql"

# The processor time of a process and of all its children, in hundredths of a second.
cpu() { { cat /proc/"$1"/stat $(pgrep -P "$1" | sed 's|.*|/proc/&/stat|') 2>/dev/null || true; } | awk '{ sum += $14 + $15 + $16 + $17 } END { print sum }'; }
run() { # name, connection, clients, process
    local before out after
    before=$(cpu "$4")
    out=$(taskset -c 1 pgbench -n -M prepared -f "$WORK/scan.sql" -c "$3" -j 1 -T "$SECONDS_EACH" "$2" 2>/dev/null)
    after=$(cpu "$4")
    echo "$out" | awk -v name="$1" -v clients="$3" -v cpu=$((after - before)) '
        /transactions actually/ { split($NF, n, "/"); scans = n[1] }
        /^tps/ { printf "%-20s %2d clients %7.0f scans/s  %6.1f us\n", name, clients, $3, cpu * 10000 / scans }'
}
for round in 1 2 3; do
    for clients in 1 8; do
        run "Sextant" "$PLAIN" "$clients" "${PIDS[0]}"
        run "Sextant TLS" "$TLS" "$clients" "${PIDS[1]}"
        run "PostgreSQL" "$POSTGRES sslmode=disable" "$clients" "$POSTMASTER"
        run "PostgreSQL TLS" "$POSTGRES sslmode=require" "$clients" "$POSTMASTER"
    done
done
