#!/usr/bin/env bash
# Writes and reads of documents beside PostgreSQL: the same statements by pgbench, on one machine, in one run, alternating.
#
#   tests/bench/documents.sh one    [ROWS]   `sextant dev` beside PostgreSQL: COPY, upserts, documents by id, restart
#   tests/bench/documents.sh copies [ROWS]   a cluster of processes: a bucket with one copy beside one with two
#
# The published binary must be built: cargo build --profile dist --bin sextant. PostgreSQL (with pgbench) runs as the user postgres, with
# its default durability. Environment: SEXTANT (binary), SECS (of each pgbench run, 8), ROUNDS (3), WORK (directory for all data).
set -euo pipefail
cd "$(dirname "$0")/../.."
MODE=${1:-one} ROWS=${2:-1000000} SECS=${SECS:-8} ROUNDS=${ROUNDS:-3}
SEXTANT=${SEXTANT:-target/dist/sextant}
WORK=$(mktemp -d "${WORK:-/tmp}/documents.XXXXXX")
PIDS=()
PGBIN=/usr/lib/postgresql/$(ls /usr/lib/postgresql 2>/dev/null | sort -n | tail -1)/bin

stop_all() {
    kill -9 "${PIDS[@]}" 2>/dev/null || true
    [ -d "$WORK/pg" ] && su postgres -c "$PGBIN/pg_ctl -D $WORK/pg -m immediate stop" >/dev/null 2>&1
    rm -rf "$WORK"
}
trap stop_all EXIT

sx() { psql -q -X -h 127.0.0.1 -p 27432 -U postgres "$@"; }
pg() { psql -q -X -h 127.0.0.1 -p 25432 -U postgres "$@"; }
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.3f", b - a }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
rate() { awk -v n="$1" -v s="$2" 'BEGIN { printf "%.0f", n / s }'; }
median() { sort -n | awk '{ a[NR] = $1 } END { printf "%s (%s to %s)", a[int((NR + 1) / 2)], a[1], a[NR] }'; }
middle() { awk '{ print $1 }' <<<"$1"; }

# The transactions per second of a script with this many clients.
tps() { # port, clients, script
    pgbench -n -h 127.0.0.1 -p "$1" -U postgres -M prepared -c "$2" -j 1 -T "$SECS" -f "$WORK/$3" postgres 2>"$WORK/pgbench.err" |
        awk '/^tps/ { print $3 }' || { cat "$WORK/pgbench.err" >&2; return 1; }
}

# Until all documents are in: the positions of a write, and of a scan, cover them.
copy_sx() { # bucket
    local begun; begun=$(now)
    sx -c "\\copy $1 from $WORK/docs.jsonl (format jsonl)"
    sx -c "select id from $1 where id = '10000000'" >/dev/null
    since "$begun"
}

make_documents() {
    python3 - "$ROWS" "$WORK" <<'P'
import random, sys
r, n, work = random.Random(7), int(sys.argv[1]), sys.argv[2]
with open(work + '/docs.jsonl', 'w') as docs, open(work + '/docs.tsv', 'w') as rows:
    for i in range(n):
        row = ('%d' % (10000000 + i), (i * 7919) % n, 'c%05d' % r.randrange(20000), '%032x' % r.getrandbits(128))
        docs.write('{"id":"%s","n":%d,"city":"%s","pad":"%s"}\n' % row)
        rows.write('%s\t%d\t%s\t%s\n' % row)
P
    chmod 755 "$WORK"
    local id="\\set a random(10000000, $((10000000 + 2 * ROWS)))" doc='{"n": 77, "city": "c00001", "pad": "0123456789abcdef0123456789abcdef"}'
    local known="\\set a random(10000000, $((9999999 + ROWS)))"
    for bucket in docs twice; do
        echo "$id"
        echo "INSERT INTO $bucket (id, doc) VALUES (:a, '$doc') ON CONFLICT (id) DO UPDATE SET doc = excluded.doc;"
    done >"$WORK/both"
    sed -n 1,2p "$WORK/both" >"$WORK/sx.upsert"
    sed -n 3,4p "$WORK/both" >"$WORK/sx.upsert_twice"
    printf '%s\n' "$id" "INSERT INTO docs VALUES (:a, 77, 'c00001', '0123456789abcdef0123456789abcdef') ON CONFLICT (id) DO UPDATE SET n = excluded.n, city = excluded.city, pad = excluded.pad;" >"$WORK/pg.upsert"
    printf '%s\n' "$known" 'SELECT id, doc FROM docs WHERE id = :a;' >"$WORK/sx.get"
    printf '%s\n' "$known" 'SELECT * FROM docs WHERE id = (:a)::text;' >"$WORK/pg.get"
}

start_pg() {
    chown -R postgres "$WORK"
    su postgres -c "$PGBIN/initdb -D $WORK/pg -A trust >/dev/null; $PGBIN/pg_ctl -D $WORK/pg -l $WORK/pg.log -w \
        -o '-p 25432 -k $WORK -c shared_buffers=1GB -c maintenance_work_mem=512MB -c max_wal_size=4GB -c max_connections=200' start >/dev/null"
    pg -c 'create table docs(id text primary key, n int8, city text, pad text)'
}

start_dev() {
    "$SEXTANT" dev --data "$WORK/sx" --nodes 1 --sql-port 27432 --grpc-port 0 --http-port 0 >"$WORK/dev.out" 2>>"$WORK/dev.err" &
    SX=$!
    PIDS+=("$SX")
    for _ in $(seq 600); do grep -q ready "$WORK/dev.out" && return; sleep 0.05; done
    cat "$WORK/dev.err" >&2
    exit 1
}

bench_one() {
    local begun seconds pgs sxs
    make_documents
    start_pg
    start_dev
    for round in $(seq "$ROUNDS"); do
        pg -c 'truncate docs' && pg -c checkpoint
        begun=$(now); pg -c "\\copy docs from $WORK/docs.tsv"; pgs=$(since "$begun")
        sx -c 'drop bucket if exists docs' && sx -c 'create bucket docs'
        sxs=$(copy_sx docs)
        echo "COPY round $round: sextant $(rate "$ROWS" "$sxs")/s, PostgreSQL $(rate "$ROWS" "$pgs")/s, ratio $(ratio "$pgs" "$sxs")"
    done
    for clients in 8 64; do
        : >"$WORK/pgs"; : >"$WORK/sxs"
        for _ in $(seq "$ROUNDS"); do
            tps 25432 $clients pg.upsert >>"$WORK/pgs"
            tps 27432 $clients sx.upsert >>"$WORK/sxs"
        done
        pgs=$(median <"$WORK/pgs"); sxs=$(median <"$WORK/sxs")
        echo "upserts, $clients clients: sextant $sxs/s, PostgreSQL $pgs/s, ratio $(ratio "$(middle "$sxs")" "$(middle "$pgs")")"
    done
    pg -c 'vacuum analyze docs'
    for clients in 8; do
        : >"$WORK/pgs"; : >"$WORK/sxs"
        for _ in $(seq "$ROUNDS"); do
            tps 25432 $clients pg.get >>"$WORK/pgs"
            tps 27432 $clients sx.get >>"$WORK/sxs"
        done
        pgs=$(median <"$WORK/pgs"); sxs=$(median <"$WORK/sxs")
        echo "documents by id, $clients clients: sextant $sxs/s, PostgreSQL $pgs/s, ratio $(ratio "$(middle "$sxs")" "$(middle "$pgs")")"
    done
    kill -9 "$SX"; wait "$SX" 2>/dev/null || true
    begun=$(now)
    start_dev
    until sx -c "select id from docs where id = '10000000'" >/dev/null 2>&1; do sleep 0.02; done
    echo "restart after kill -9, until a document is answered: $(since "$begun") s"
}

# A process of a cluster, with its output in a file of its own.
member() { # role, number, port, further flags
    local role=$1 id=$2 port=$3; shift 3
    "$SEXTANT" "$role" --id "$id" --peer-listen "127.0.0.1:$port" --data "$WORK/$role-$id" \
        --coordinators 1=127.0.0.1:27501 "$@" >"$WORK/$role-$id.out" 2>"$WORK/$role-$id.err" &
    PIDS+=($!)
}

bench_copies() {
    local one two
    make_documents
    member coordinator 1 27501
    member projector 101 27511
    member projector 102 27512
    member indexer 201 27521
    "$SEXTANT" router --id 301 --sql 127.0.0.1:27432 --grpc 127.0.0.1:0 --coordinators 1=127.0.0.1:27501 \
        >"$WORK/router.out" 2>"$WORK/router.err" &
    PIDS+=($!)
    for _ in $(seq 200); do sx -c 'show nodes' >/dev/null 2>&1 && break; sleep 0.1; done
    : >"$WORK/ones"; : >"$WORK/twos"
    for _ in $(seq "$ROUNDS"); do
        sx -c 'drop bucket if exists docs' && sx -c 'create bucket docs'
        sx -c 'drop bucket if exists twice' && sx -c 'create bucket twice with (copies = 2)'
        until [ "$(sx -At -c 'show copies' | grep -c '^twice.*in sync')" = 1 ]; do sleep 0.1; done
        rate "$ROWS" "$(copy_sx docs)" >>"$WORK/ones"; echo >>"$WORK/ones"
        rate "$ROWS" "$(copy_sx twice)" >>"$WORK/twos"; echo >>"$WORK/twos"
    done
    one=$(median <"$WORK/ones"); two=$(median <"$WORK/twos")
    echo "COPY: one copy $one/s, two copies $two/s, ratio $(ratio "$(middle "$two")" "$(middle "$one")")"
    for clients in 8 64; do
        : >"$WORK/ones"; : >"$WORK/twos"
        for _ in $(seq "$ROUNDS"); do
            tps 27432 $clients sx.upsert >>"$WORK/ones"
            tps 27432 $clients sx.upsert_twice >>"$WORK/twos"
        done
        one=$(median <"$WORK/ones"); two=$(median <"$WORK/twos")
        echo "upserts, $clients clients: one copy $one/s, two copies $two/s, ratio $(ratio "$(middle "$two")" "$(middle "$one")")"
    done
    sx -c 'show copies'
}

echo "$ROWS documents, $(nproc) cores, $SECS s a run, $ROUNDS rounds: median (minimum to maximum)"
case $MODE in
    one) bench_one ;;
    copies) bench_copies ;;
    *) echo "usage: $0 one|copies [ROWS]" >&2; exit 2 ;;
esac
