-- pgbench18: pgbench 18.6; only what 16 does not send
-- 3 statements: 1 catalogue, 2 data

-- [1] catalogue | extended | sent 6x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- parameters: $1 regclass (Parse says unspecified) = 'pgbench_branches'
-- result: relkind "char"
SELECT relkind FROM pg_catalog.pg_class WHERE oid=$1::pg_catalog.regclass;

-- [2] data | simple | sent 2x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- result: COPY n
copy pgbench_branches from stdin with (freeze on);

-- [3] data | simple | sent 2x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- result: COPY n
copy pgbench_tellers from stdin with (freeze on);
