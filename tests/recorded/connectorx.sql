-- connectorx: connectorx 0.4.6
-- 8 statements: 1 session, 7 data

-- [1] session | simple | sent 8x | by: read_sql; read_sql partitioned; read_sql protocol=cursor; get_meta
-- result: I
-- (empty statement)

-- [2] data | extended | sent 3x | by: read_sql; read_sql protocol=cursor
-- wire: binary results, named statement
-- result: id text
select id from people;

-- [3] data | extended | sent 1x | by: read_sql
-- wire: binary results, named statement
-- result: COPY n
COPY (select id from people) TO STDOUT WITH BINARY;

-- [4] data | extended | sent 1x | by: read_sql partitioned
-- wire: binary results, named statement
-- result: min integer, max integer
SELECT min(CXTMPTAB_RANGE.age), max(CXTMPTAB_RANGE.age) FROM (SELECT id, CAST((doc ->> 'age') AS INT) AS age FROM people) AS CXTMPTAB_RANGE;

-- [5] data | extended | sent 1x | by: read_sql partitioned
-- wire: named statement, only Parse/Describe
-- result: id text, age integer
SELECT * FROM (SELECT id, CAST((doc ->> 'age') AS INT) AS age FROM people) AS CXTMPTAB_PART WHERE 1 <= CXTMPTAB_PART.age AND CXTMPTAB_PART.age < 26;

-- [6] data | extended | sent 1x | by: read_sql partitioned
-- wire: binary results, named statement
-- result: COPY n
COPY (SELECT * FROM (SELECT id, CAST((doc ->> 'age') AS INT) AS age FROM people) AS CXTMPTAB_PART WHERE 1 <= CXTMPTAB_PART.age AND CXTMPTAB_PART.age < 26) TO STDOUT WITH BINARY;

-- [7] data | extended | sent 1x | by: read_sql partitioned
-- wire: binary results, named statement
-- result: COPY n
COPY (SELECT * FROM (SELECT id, CAST((doc ->> 'age') AS INT) AS age FROM people) AS CXTMPTAB_PART WHERE 26 <= CXTMPTAB_PART.age AND CXTMPTAB_PART.age < 51) TO STDOUT WITH BINARY;

-- [8] data | extended | sent 1x | by: get_meta
-- wire: named statement, only Parse/Describe
-- result: id text, doc jsonb
select id, doc from people;
