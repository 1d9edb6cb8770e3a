#!/usr/bin/env bash
# Drivers of PostgreSQL, unchanged, against users with passwords and a port with TLS: psql, psycopg, asyncpg, node-postgres, JDBC.
#
#   tests/drivers.sh [BINARY]      default: target/dist/sextant
#
# psycopg and asyncpg come from PyPI, and node-postgres from the npm registry. JDBC needs `java` and the driver's file in JDBC_JAR (Debian
# package libpostgresql-jdbc-java, the default). A driver that cannot be had is left out, and said so; DRIVERS="psql psycopg" names those
# that must pass.
set -euo pipefail
cd "$(dirname "$0")/.."
BINARY=$(realpath "${1:-target/dist/sextant}")
FROM=$(realpath tests/drivers)
WORK=$(mktemp -d)
NODE=
trap 'kill "$NODE" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$WORK"' EXIT

"$BINARY" dev --data "$WORK/data" --nodes 1 --sql-port 0 --grpc-port 0 --http-port 0 --auth scram --tls >"$WORK/ready" 2>"$WORK/log" &
NODE=$!
for _ in $(seq 300); do
    grep -q ^ready "$WORK/ready" && break
    sleep 0.1
done
grep -q ^ready "$WORK/ready" || { cat "$WORK/log" >&2; exit 1; }
address=$(sed -n 's/.* sql=\([^ ]*\).*/\1/p' "$WORK/ready")
export PORT=${address#*:} CA=$WORK/data/tls/ca.pem ADA=a-password-of-ada
admin=$(sed -n 's/.* admin=admin:\([^ ]*\).*/\1/p' "$WORK/ready")

psql_as() { # user, password, arguments
    PGPASSWORD=$2 psql -qAtX "host=127.0.0.1 port=$PORT dbname=x user=$1 sslmode=verify-full sslrootcert=$CA channel_binding=require" "${@:3}"
}
psql_as admin "$admin" -v ON_ERROR_STOP=1 <<SQL
CREATE BUCKET docs;
CREATE INDEX by_n ON docs (n::int8);
INSERT INTO docs (id, doc) VALUES ('1', '{"n":1}'), ('2', '{"n":2}'), ('3', '{"n":3}'), ('4', '{"n":4}');
CREATE USER ada PASSWORD '$ADA';
GRANT scan ON docs TO ada;
CREATE BUCKET batches;
GRANT scan, write ON batches TO ada;
SQL

passed=()
say() { echo "$1: $2"; [ "$2" != passed ] || passed+=("$1"); }

rows=$(psql_as ada "$ADA" -c "SELECT id, n FROM by_n WHERE n BETWEEN 2 AND 3 ORDER BY n")
[ "$rows" = $'2|2\n3|3' ] || { echo "psql: $rows" >&2; exit 1; }
! psql_as ada wrong -c "SELECT 1" 2>/dev/null || { echo "psql: a wrong password was taken" >&2; exit 1; }
say psql passed

if python3 -m venv "$WORK/venv" && "$WORK/venv/bin/pip" -q install "psycopg[binary]" asyncpg 2>"$WORK/pip"; then
    "$WORK/venv/bin/python" "$FROM/psycopg_client.py"
    say psycopg passed
    "$WORK/venv/bin/python" "$FROM/asyncpg_client.py"
    say asyncpg passed
else
    say "psycopg and asyncpg" "not installed, left out"
fi
if command -v node >/dev/null && npm install --silent --prefix "$WORK" pg >/dev/null 2>&1; then
    NODE_PATH=$WORK/node_modules node "$FROM/pg_client.js"
    say node-postgres passed
else
    say node-postgres "not installed, left out"
fi
jar=${JDBC_JAR:-/usr/share/java/postgresql.jar}
if command -v java >/dev/null && [ -e "$jar" ]; then
    java -cp "$jar" "$FROM/JdbcClient.java"
    say JDBC passed
else
    say JDBC "not installed, left out"
fi
for wanted in ${DRIVERS:-psql}; do
    [[ " ${passed[*]} " = *" $wanted "* ]] || { echo "$wanted did not run" >&2; exit 1; }
done
