-- pgbench16: pgbench 16.2
-- 42 statements: 1 catalogue, 4 session, 37 data

-- [1] catalogue | simple | sent 5x | by: pgbench -M simple (TPC-B); pgbench -M extended (TPC-B); pgbench -M prepared (TPC-B); pgbench -S; pgbench -N -n
-- result: n integer, partstrat "char", count bigint
select o.n, p.partstrat, pg_catalog.count(i.inhparent) from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on (n.oid = c.relnamespace) cross join lateral (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) as o(n) left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid) left join pg_catalog.pg_inherits as i on (c.oid = i.inhparent) where c.relname = 'pgbench_accounts' and o.n is not null group by 1, 2 order by 1 asc limit 1;

-- [2] session | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: BEGIN
begin;

-- [3] session | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: COMMIT
commit;

-- [4] session | simple and extended | sent 10x | by: pgbench -M simple (TPC-B); pgbench -M extended (TPC-B); pgbench -M prepared (TPC-B); pgbench -N -n
-- result: BEGIN
BEGIN;

-- [5] session | simple and extended | sent 10x | by: pgbench -M simple (TPC-B); pgbench -M extended (TPC-B); pgbench -M prepared (TPC-B); pgbench -N -n
-- result: COMMIT
END;

-- [6] data | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: DROP TABLE
drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers;

-- [7] data | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: CREATE TABLE
create table pgbench_history(tid int,bid int,aid    int,delta int,mtime timestamp,filler char(22));

-- [8] data | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: CREATE TABLE
create table pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84)) with (fillfactor=100);

-- [9] data | simple | sent 2x | by: pgbench -i; pgbench -i -I dtGvp
-- result: CREATE TABLE
create table pgbench_accounts(aid    int not null,bid int,abalance int,filler char(84)) with (fillfactor=100);

-- [10] data | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: CREATE TABLE
create table pgbench_branches(bid int not null,bbalance int,filler char(88)) with (fillfactor=100);

-- [11] data | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: TRUNCATE TABLE
truncate table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers;

-- [12] data | simple | sent 2x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- result: INSERT n n
insert into pgbench_branches(bid,bbalance) values(1,0);

-- [13] data | simple | sent 20x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- result: INSERT n n
insert into pgbench_tellers(tid,bid,tbalance) values (1,1,0);

-- [14] data | simple | sent 1x | by: pgbench -i
-- result: COPY n
copy pgbench_accounts from stdin with (freeze on);

-- [15] data | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: VACUUM
vacuum analyze pgbench_branches;

-- [16] data | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: VACUUM
vacuum analyze pgbench_tellers;

-- [17] data | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: VACUUM
vacuum analyze pgbench_accounts;

-- [18] data | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: VACUUM
vacuum analyze pgbench_history;

-- [19] data | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: ALTER TABLE
alter table pgbench_branches add primary key (bid);

-- [20] data | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: ALTER TABLE
alter table pgbench_tellers add primary key (tid);

-- [21] data | simple | sent 3x | by: pgbench -i; pgbench -i --foreign-keys --partitions=2 -I dtgvpf; pgbench -i -I dtGvp
-- result: ALTER TABLE
alter table pgbench_accounts add primary key (aid);

-- [22] data | simple | sent 1x | by: pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- result: CREATE TABLE
create table pgbench_accounts(aid    int not null,bid int,abalance int,filler char(84)) partition by range (aid);

-- [23] data | simple | sent 1x | by: pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- result: CREATE TABLE
create table pgbench_accounts_1
  partition of pgbench_accounts
  for values from (minvalue) to (50001) with (fillfactor=100);

-- [24] data | simple | sent 1x | by: pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- result: CREATE TABLE
create table pgbench_accounts_2
  partition of pgbench_accounts
  for values from (50001) to (maxvalue) with (fillfactor=100);

-- [25] data | simple | sent 1x | by: pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- result: COPY n
copy pgbench_accounts from stdin;

-- [26] data | simple | sent 1x | by: pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- result: ALTER TABLE
alter table pgbench_tellers add constraint pgbench_tellers_bid_fkey foreign key (bid) references pgbench_branches;

-- [27] data | simple | sent 1x | by: pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- result: ALTER TABLE
alter table pgbench_accounts add constraint pgbench_accounts_bid_fkey foreign key (bid) references pgbench_branches;

-- [28] data | simple | sent 1x | by: pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- result: ALTER TABLE
alter table pgbench_history add constraint pgbench_history_bid_fkey foreign key (bid) references pgbench_branches;

-- [29] data | simple | sent 1x | by: pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- result: ALTER TABLE
alter table pgbench_history add constraint pgbench_history_tid_fkey foreign key (tid) references pgbench_tellers;

-- [30] data | simple | sent 1x | by: pgbench -i --foreign-keys --partitions=2 -I dtgvpf
-- result: ALTER TABLE
alter table pgbench_history add constraint pgbench_history_aid_fkey foreign key (aid) references pgbench_accounts;

-- [31] data | simple | sent 1x | by: pgbench -i -I dtGvp
-- result: INSERT n n
insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, 1) as bid;

-- [32] data | simple | sent 1x | by: pgbench -i -I dtGvp
-- result: INSERT n n
insert into pgbench_tellers(tid,bid,tbalance) select tid, (tid - 1) / 10 + 1, 0 from generate_series(1, 10) as tid;

-- [33] data | simple | sent 1x | by: pgbench -i -I dtGvp
-- result: INSERT n n
insert into pgbench_accounts(aid,bid,abalance,filler) select aid, (aid - 1) / 100000 + 1, 0, '' from generate_series(1, 100000) as aid;

-- [34] data | simple | sent 5x | by: pgbench -M simple (TPC-B); pgbench -M extended (TPC-B); pgbench -M prepared (TPC-B); pgbench -S; pgbench -N -n
-- result: count bigint
select count(*) from pgbench_branches;

-- [35] data | simple | sent 4x | by: pgbench -M simple (TPC-B); pgbench -M extended (TPC-B); pgbench -M prepared (TPC-B); pgbench -S
-- result: VACUUM
vacuum pgbench_branches;

-- [36] data | simple | sent 4x | by: pgbench -M simple (TPC-B); pgbench -M extended (TPC-B); pgbench -M prepared (TPC-B); pgbench -S
-- result: VACUUM
vacuum pgbench_tellers;

-- [37] data | simple | sent 4x | by: pgbench -M simple (TPC-B); pgbench -M extended (TPC-B); pgbench -M prepared (TPC-B); pgbench -S
-- result: TRUNCATE TABLE
truncate pgbench_history;

-- [38] data | simple and extended | sent 10x | by: pgbench -M simple (TPC-B); pgbench -M extended (TPC-B); pgbench -M prepared (TPC-B); pgbench -N -n
-- result: UPDATE n
UPDATE pgbench_accounts SET abalance = abalance + -1424 WHERE aid = 46300;

-- [39] data | simple and extended | sent 13x | by: pgbench -M simple (TPC-B); pgbench -M extended (TPC-B); pgbench -M prepared (TPC-B); pgbench -S; pgbench -N -n
-- result: abalance integer
SELECT abalance FROM pgbench_accounts WHERE aid = 46300;

-- [40] data | simple and extended | sent 7x | by: pgbench -M simple (TPC-B); pgbench -M extended (TPC-B); pgbench -M prepared (TPC-B)
-- result: UPDATE n
UPDATE pgbench_tellers SET tbalance = tbalance + -1424 WHERE tid = 3;

-- [41] data | simple and extended | sent 7x | by: pgbench -M simple (TPC-B); pgbench -M extended (TPC-B); pgbench -M prepared (TPC-B)
-- result: UPDATE n
UPDATE pgbench_branches SET bbalance = bbalance + -1424 WHERE bid = 1;

-- [42] data | simple and extended | sent 10x | by: pgbench -M simple (TPC-B); pgbench -M extended (TPC-B); pgbench -M prepared (TPC-B); pgbench -N -n
-- result: INSERT n n
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (3, 1, 46300, -1424, CURRENT_TIMESTAMP);
