-- pony: pony 0.7.20
-- 6 statements: 1 catalogue, 3 session, 2 data

-- [1] catalogue | simple | sent 1x | by: generate_mapping(check_tables)
-- result: tablename name
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'public' AND lower(tablename) = lower('orders');

-- [2] session | simple | sent 2x | by: bind; get
-- result: DISCARD ALL
DISCARD ALL;

-- [3] session | simple | sent 1x | by: generate_mapping(check_tables)
-- result: BEGIN
BEGIN;

-- [4] session | simple | sent 1x | by: generate_mapping(check_tables)
-- result: COMMIT
COMMIT;

-- [5] data | simple | sent 1x | by: generate_mapping(check_tables)
-- result: id text, doc jsonb
SELECT "orders"."id", "orders"."doc"
FROM "orders" "orders"
WHERE 0 = 1;

-- [6] data | simple | sent 1x | by: get
-- result: id text, doc jsonb
SELECT "id", "doc"
FROM "orders"
WHERE "id" = 'o1';
