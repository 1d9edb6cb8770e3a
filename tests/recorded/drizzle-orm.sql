-- drizzle-orm: drizzle-orm 0.45.4
-- 8 statements: 4 session, 4 data

-- [1] session | simple | sent 1x | by: transaction
-- result: BEGIN
begin isolation level serializable read only;

-- [2] session | simple | sent 1x | by: transaction
-- result: SAVEPOINT
savepoint sp1;

-- [3] session | simple | sent 1x | by: transaction
-- result: RELEASE
release savepoint sp1;

-- [4] session | simple | sent 1x | by: transaction
-- result: COMMIT
commit;

-- [5] data | extended | sent 1x | by: select
-- parameters: $1 text (Parse says unspecified) = 'o1', $2 bigint (Parse says unspecified) = '3'
-- result: id text, doc jsonb
select "id", "doc" from "orders" where "orders"."id" = $1 limit $2;

-- [6] data | extended | sent 1x | by: insert
-- parameters: $1 text (Parse says unspecified) = 'dz1', $2 jsonb (Parse says unspecified) = '{}'
-- result: id text, doc jsonb
insert into "orders" ("id", "doc") values ($1, $2) on conflict do nothing returning "id", "doc";

-- [7] data | extended | sent 1x | by: delete
-- parameters: $1 text (Parse says unspecified) = 'dz1'
-- result: DELETE n
delete from "orders" where "orders"."id" = $1;

-- [8] data | extended | sent 2x | by: transaction
-- parameters: $1 bigint (Parse says unspecified) = '1'
-- result: id text, doc jsonb
select "id", "doc" from "orders" limit $1;
