-- postgres.js: postgres 3.4.9
-- 22 statements: 1 catalogue, 13 session, 8 data

-- [1] catalogue | extended | sent 2x | by: connect + first query; fetch_types (types db)
-- wire: named statement
-- result: oid oid, typarray oid
select b.oid, b.typarray
      from pg_catalog.pg_type a
      left join pg_catalog.pg_type b on b.oid = a.typelem
      where a.typcategory = 'A'
      group by b.oid, b.typarray
      order by b.oid;

-- [2] session | extended | sent 1x | by: connect + first query
-- wire: named statement
-- result: ?column? integer
select 1;

-- [3] session | simple | sent 1x | by: begin/savepoint
-- result: BEGIN
begin isolation level serializable;

-- [4] session | extended | sent 1x | by: begin/savepoint
-- wire: named statement
-- result: SAVEPOINT
savepoint "s0";

-- [5] session | extended | sent 1x | by: begin/savepoint
-- wire: named statement
-- result: ?column? integer
select 2;

-- [6] session | extended | sent 1x | by: begin/savepoint
-- wire: named statement
-- result: COMMIT
commit;

-- [7] session | simple | sent 1x | by: simple()
-- result: ?column? integer
-- result: ?column? integer
select 1; select 2;

-- [8] session | extended | sent 1x | by: unsafe
-- parameters: $1 text (Parse says unspecified) = 'a'
-- result: text text
select $1::text;

-- [9] session | extended | sent 1x | by: listen/notify
-- wire: named statement
-- result: LISTEN
listen "ch";

-- [10] session | extended | sent 1x | by: listen/notify
-- parameters: $1 text (Parse says unspecified) = 'ch', $2 text (Parse says unspecified) = 'x'
-- wire: named statement
-- result: pg_notify void
select pg_notify($1, $2);

-- [11] session | extended | sent 1x | by: listen/notify
-- wire: named statement
-- result: UNLISTEN
unlisten "ch";

-- [12] session | simple | sent 1x | by: subscribe (logical replication)
-- result: slot_name text, consistent_point text, snapshot_name text, output_plugin text
CREATE_REPLICATION_SLOT postgresjs_<n> TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT;

-- [13] session | simple | sent 1x | by: subscribe (logical replication)
-- result: COPY n, START_REPLICATION
START_REPLICATION SLOT postgresjs_<n> LOGICAL 0/<lsn> (proto_version '1', publication_names 'alltables');

-- [14] session | extended | sent 1x | by: fetch_types (types db)
-- wire: named statement
-- result: array mood[]
select array['ok'::mood];

-- [15] data | extended | sent 1x | by: query params
-- parameters: $1 text (Parse says unspecified) = 'p1', $2 bigint (Parse says unspecified) = '3'
-- wire: named statement
-- result: id text, doc jsonb
select id,doc from people where id=$1 limit $2;

-- [16] data | extended | sent 1x | by: in list
-- parameters: $1 text (Parse says unspecified) = 'p1', $2 text (Parse says unspecified) = 'p2'
-- wire: named statement
-- result: id text
select id from people where id in ($1,$2);

-- [17] data | extended | sent 1x | by: any array
-- parameters: $1 text[] (Parse says unspecified) = '{"p1"}'
-- wire: named statement
-- result: id text
select id from people where id=any($1);

-- [18] data | extended | sent 1x | by: insert helper returning
-- parameters: $1 text (Parse says unspecified) = 'j1', $2 jsonb = '{"a":1}'
-- wire: named statement
-- result: id text, doc jsonb
insert into orders ("id","doc")values($1,$2) on conflict do nothing returning *;

-- [19] data | extended | sent 1x | by: update helper
-- parameters: $1 jsonb = '{}', $2 text (Parse says unspecified) = 'j1'
-- wire: named statement
-- result: UPDATE n
update orders set "doc"=$1 where id=$2;

-- [20] data | extended | sent 1x | by: cursor
-- wire: Execute limit 10, named statement
-- result: id text
select id from people;

-- [21] data | extended | sent 1x | by: describe()
-- parameters: $1 text (Parse says unspecified) = (not bound)
-- wire: named statement, only Parse/Describe
-- result: id text, doc jsonb
select id,doc from people where id=$1;

-- [22] data | simple | sent 1x | by: subscribe (logical replication)
-- result: CREATE PUBLICATION
create publication tmp_pub for all tables;
