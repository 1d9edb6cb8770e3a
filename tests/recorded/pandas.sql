-- pandas: pandas 3.1.1, SQLAlchemy 2.1.9, psycopg
-- 49 statements: 24 catalogue, 16 session, 9 data

-- [1] catalogue | extended | sent 1x | by: read_sql_table
-- parameters: $1 text (Parse says unspecified) = 'hstore'
-- result: name name, oid oid, array_oid oid, regtype text, delimiter "char"
SELECT
    typname AS name, oid, typarray AS array_oid,
    oid::regtype::text AS regtype, typdelim AS delimiter
FROM pg_type t
WHERE t.oid = to_regtype($1)
ORDER BY t.oid;

-- [2] catalogue | extended | sent 8x | by: read_sql_table; read_sql(name); to_sql if_exists=fail; to_sql if_exists=replace; to_sql if_exists=append; … (6 actions)
-- parameters: $1 character varying (Parse says unspecified) = 'people', $2 character varying (Parse says unspecified) = 'r', $3 character varying (Parse says unspecified) = 'p', $4 character varying (Parse says unspecified) = 'f', $5 character varying (Parse says unspecified) = 'v', $6 character varying (Parse says unspecified) = 'm', $7 character varying (Parse says unspecified) = 'pg_catalog'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relname IN ($1::VARCHAR) AND pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $7::VARCHAR;

-- [3] catalogue | extended | sent 4x | by: read_sql_table; read_sql(name); to_sql if_exists=replace; to_sql multi
-- parameters: $1 character varying (Parse says unspecified) = 'r', $2 character varying (Parse says unspecified) = 'p', $3 character varying (Parse says unspecified) = 't', $4 character varying (Parse says unspecified) = 'pg_catalog'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR, $2::VARCHAR]) AND pg_catalog.pg_class.relpersistence != $3::VARCHAR AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $4::VARCHAR;

-- [4] catalogue | extended | sent 8x | by: read_sql_table; read_sql(name); to_sql if_exists=replace; to_sql multi
-- parameters: $1 character varying (Parse says unspecified) = 'v', $2 character varying (Parse says unspecified) = 't', $3 character varying (Parse says unspecified) = 'pg_catalog'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR]) AND pg_catalog.pg_class.relpersistence != $2::VARCHAR AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $3::VARCHAR;

-- [5] catalogue | extended | sent 4x | by: read_sql_table; read_sql(name); to_sql if_exists=replace; to_sql multi
-- parameters: $1 character varying (Parse says unspecified) = '', $2 character varying (Parse says unspecified) = 'always', $3 character varying (Parse says unspecified) = 'a', $4 character varying (Parse says unspecified) = 'start', $5 character varying (Parse says unspecified) = 'increment', $6 character varying (Parse says unspecified) = 'minvalue', $7 character varying (Parse says unspecified) = 'maxvalue', $8 character varying (Parse says unspecified) = 'cache', $9 character varying (Parse says unspecified) = 'cycle', $10 character varying (Parse says unspecified) = '', $11 integer (Parse says smallint) = 0, $12 character varying (Parse says unspecified) = 'name', $13 character varying (Parse says unspecified) = 'schema', $14 smallint = 0, $15 character varying (Parse says unspecified) = 'r', $16 character varying (Parse says unspecified) = 'p', $17 character varying (Parse says unspecified) = 'f', $18 character varying (Parse says unspecified) = 'v', $19 character varying (Parse says unspecified) = 'm', $20 character varying (Parse says unspecified) = 'pg_catalog', $21 character varying (Parse says unspecified) = 'people'
-- wire: binary parameters
-- result: name name, format_type text, default text, not_null boolean, table_name name, comment text, generated "char", identity_options json, collation json
SELECT pg_catalog.pg_attribute.attname AS name, pg_catalog.format_type(pg_catalog.pg_attribute.atttypid, pg_catalog.pg_attribute.atttypmod) AS format_type, CASE WHEN pg_catalog.pg_attribute.atthasdef THEN (SELECT pg_catalog.pg_get_expr(pg_catalog.pg_attrdef.adbin, pg_catalog.pg_attrdef.adrelid) AS pg_get_expr_1 
FROM pg_catalog.pg_attrdef 
WHERE pg_catalog.pg_attribute.atthasdef AND pg_catalog.pg_attrdef.adrelid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attrdef.adnum = pg_catalog.pg_attribute.attnum) ELSE NULL END AS "default", pg_catalog.pg_attribute.attnotnull AS not_null, pg_catalog.pg_class.relname AS table_name, pg_catalog.pg_description.description AS comment, pg_catalog.pg_attribute.attgenerated AS generated, CASE WHEN (pg_catalog.pg_attribute.attidentity != $1::VARCHAR) THEN (SELECT json_build_object($2::VARCHAR, pg_catalog.pg_attribute.attidentity = $3::VARCHAR, $4::VARCHAR, pg_catalog.pg_sequence.seqstart, $5::VARCHAR, pg_catalog.pg_sequence.seqincrement, $6::VARCHAR, pg_catalog.pg_sequence.seqmin, $7::VARCHAR, pg_catalog.pg_sequence.seqmax, $8::VARCHAR, pg_catalog.pg_sequence.seqcache, $9::VARCHAR, pg_catalog.pg_sequence.seqcycle) AS json_build_object_1 
FROM pg_catalog.pg_sequence 
WHERE pg_catalog.pg_attribute.attidentity != $10::VARCHAR AND pg_catalog.pg_sequence.seqrelid = CAST(CAST(pg_catalog.pg_get_serial_sequence(CAST(CAST(pg_catalog.pg_attribute.attrelid AS REGCLASS) AS TEXT), pg_catalog.pg_attribute.attname) AS REGCLASS) AS OID)) ELSE NULL END AS identity_options, CASE WHEN (pg_catalog.pg_attribute.attcollation != $11::INTEGER AND (SELECT pg_catalog.pg_type.typcollation 
FROM pg_catalog.pg_type 
WHERE pg_catalog.pg_type.oid = pg_catalog.pg_attribute.atttypid) != pg_catalog.pg_attribute.attcollation) THEN (SELECT json_build_object($12::VARCHAR, pg_catalog.pg_collation.collname, $13::VARCHAR, CASE WHEN pg_catalog.pg_collation_is_visible(pg_catalog.pg_collation.oid) THEN NULL ELSE pg_catalog.pg_namespace.nspname END) AS json_build_object_9 
FROM pg_catalog.pg_collation JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_collation.collnamespace 
WHERE pg_catalog.pg_collation.oid = pg_catalog.pg_attribute.attcollation) ELSE NULL END AS collation 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_class.oid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attribute.attnum > $14::SMALLINT AND NOT pg_catalog.pg_attribute.attisdropped LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_description.objsubid = pg_catalog.pg_attribute.attnum JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$15::VARCHAR, $16::VARCHAR, $17::VARCHAR, $18::VARCHAR, $19::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $20::VARCHAR AND pg_catalog.pg_class.relname IN ($21::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_attribute.attnum;

-- [6] catalogue | extended | sent 4x | by: read_sql_table; read_sql(name); to_sql if_exists=replace; to_sql multi
-- parameters: $1 character varying (Parse says unspecified) = 'r', $2 character varying (Parse says unspecified) = 'p', $3 character varying (Parse says unspecified) = 'f', $4 character varying (Parse says unspecified) = 'v', $5 character varying (Parse says unspecified) = 'm', $6 character varying (Parse says unspecified) = 'pg_catalog', $7 character varying (Parse says unspecified) = 'people'
-- result: oid oid, relname name
SELECT pg_catalog.pg_class.oid, pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $6::VARCHAR AND pg_catalog.pg_class.relname IN ($7::VARCHAR);

-- [7] catalogue | extended | sent 10x | by: read_sql_table; read_sql_table(schema); read_sql(name); to_sql if_exists=replace; to_sql multi
-- parameters: $1 integer (Parse says smallint) = 1, $2 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $3 character varying (Parse says unspecified) = 'p', $4 oid (Parse says smallint) = <oid:people>
-- wire: binary parameters
-- result: conrelid oid, cols text[], conname name, description text, indnkeyatts smallint, indnullsnotdistinct boolean
SELECT attr.conrelid, array_agg(CAST(attr.attname AS TEXT) ORDER BY attr.ord) AS cols, attr.conname, min(attr.description) AS description, min(attr.indnkeyatts) AS indnkeyatts, bool_and(attr.indnullsnotdistinct) AS indnullsnotdistinct 
FROM (SELECT con.conrelid AS conrelid, con.conname AS conname, con.description AS description, con.ord AS ord, con.indnkeyatts AS indnkeyatts, con.indnullsnotdistinct AS indnullsnotdistinct, pg_catalog.pg_attribute.attname AS attname 
FROM pg_catalog.pg_attribute JOIN (SELECT pg_catalog.pg_constraint.conrelid AS conrelid, pg_catalog.pg_constraint.conname AS conname, unnest(pg_catalog.pg_index.indkey) AS attnum, generate_subscripts(pg_catalog.pg_index.indkey, $1::INTEGER) AS ord, pg_catalog.pg_index.indnkeyatts AS indnkeyatts, pg_catalog.pg_index.indnullsnotdistinct AS indnullsnotdistinct, pg_catalog.pg_description.description AS description 
FROM pg_catalog.pg_constraint JOIN pg_catalog.pg_index ON pg_catalog.pg_constraint.conindid = pg_catalog.pg_index.indexrelid LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($2 AS REGCLASS) 
WHERE pg_catalog.pg_constraint.contype = $3::VARCHAR AND pg_catalog.pg_constraint.conrelid IN ($4)) AS con ON pg_catalog.pg_attribute.attnum = con.attnum AND pg_catalog.pg_attribute.attrelid = con.conrelid 
WHERE con.conrelid IN ($4)) AS attr GROUP BY attr.conrelid, attr.conname ORDER BY attr.conrelid, attr.conname;

-- [8] catalogue | extended | sent 4x | by: read_sql_table; read_sql(name); to_sql if_exists=replace; to_sql multi
-- parameters: $1 boolean = true, $2 character varying (Parse says unspecified) = 'f', $3 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $4 character varying (Parse says unspecified) = 'r', $5 character varying (Parse says unspecified) = 'p', $6 character varying (Parse says unspecified) = 'f', $7 character varying (Parse says unspecified) = 'v', $8 character varying (Parse says unspecified) = 'm', $9 character varying (Parse says unspecified) = 'pg_catalog', $10 character varying (Parse says unspecified) = 'people'
-- wire: binary parameters
-- result: relname name, conname name, anon_1 text, nspname name, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname, CASE WHEN (pg_catalog.pg_constraint.oid IS NOT NULL) THEN pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, $1) END AS anon_1, nsp_ref.nspname, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_class.oid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_constraint.contype = $2::VARCHAR LEFT OUTER JOIN pg_catalog.pg_class AS cls_ref ON cls_ref.oid = pg_catalog.pg_constraint.confrelid LEFT OUTER JOIN pg_catalog.pg_namespace AS nsp_ref ON cls_ref.relnamespace = nsp_ref.oid LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($3 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $9::VARCHAR AND pg_catalog.pg_class.relname IN ($10::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname;

-- [9] catalogue | extended | sent 1x | by: read_sql_table
-- parameters: $1 character varying (Parse says unspecified) = 'btree'
-- result: oid oid, amname name
SELECT pg_catalog.pg_am.oid, pg_catalog.pg_am.amname 
FROM pg_catalog.pg_am 
WHERE pg_catalog.pg_am.amname = $1::VARCHAR;

-- [10] catalogue | simple | sent 5x | by: read_sql_table; read_sql_table(schema); read_sql(name); to_sql if_exists=replace; to_sql multi
-- result: oid oid, opcname name
SELECT pg_catalog.pg_opclass.oid, pg_catalog.pg_opclass.opcname 
FROM pg_catalog.pg_opclass 
WHERE NOT pg_catalog.pg_opclass.opcdefault;

-- [11] catalogue | extended | sent 5x | by: read_sql_table; read_sql_table(schema); read_sql(name); to_sql if_exists=replace; to_sql multi
-- parameters: $1 integer (Parse says smallint) = 0, $2 integer (Parse says smallint) = 1, $3 boolean = true, $4 integer (Parse says smallint) = 0, $5 integer (Parse says smallint) = 1, $6 oid (Parse says smallint) = <oid:people>, $7 character varying (Parse says unspecified) = 'p', $8 character varying (Parse says unspecified) = 'u', $9 character varying (Parse says unspecified) = 'x'
-- wire: binary parameters
-- result: indrelid oid, relname name, indisunique boolean, indisvalid boolean, has_constraint boolean, indoption int2vector, reloptions text[], relam oid, filter_definition text, indnkeyatts smallint, indnullsnotdistinct boolean, elements text[], elements_is_expr boolean[], elements_opclass bigint[]
SELECT pg_catalog.pg_index.indrelid, pg_catalog.pg_class.relname, pg_catalog.pg_index.indisunique, pg_catalog.pg_index.indisvalid, pg_catalog.pg_constraint.conrelid IS NOT NULL AS has_constraint, pg_catalog.pg_index.indoption, pg_catalog.pg_class.reloptions, pg_catalog.pg_class.relam, CASE WHEN (pg_catalog.pg_index.indpred IS NOT NULL) THEN pg_catalog.pg_get_expr(pg_catalog.pg_index.indpred, pg_catalog.pg_index.indrelid) END AS filter_definition, pg_catalog.pg_index.indnkeyatts, pg_catalog.pg_index.indnullsnotdistinct, idx_cols.elements, idx_cols.elements_is_expr, idx_cols.elements_opclass 
FROM pg_catalog.pg_index JOIN pg_catalog.pg_class ON pg_catalog.pg_index.indexrelid = pg_catalog.pg_class.oid LEFT OUTER JOIN (SELECT idx_attr.indexrelid AS indexrelid, min(idx_attr.indrelid) AS min_1, array_agg(idx_attr.element ORDER BY idx_attr.ord) AS elements, array_agg(idx_attr.is_expr ORDER BY idx_attr.ord) AS elements_is_expr, array_agg(idx_attr.att_opclass ORDER BY idx_attr.ord) AS elements_opclass 
FROM (SELECT idx.indexrelid AS indexrelid, idx.indrelid AS indrelid, idx.ord AS ord, CASE WHEN (idx.attnum = $1::INTEGER) THEN pg_catalog.pg_get_indexdef(idx.indexrelid, idx.ord + $2::INTEGER, $3) ELSE CAST(pg_catalog.pg_attribute.attname AS TEXT) END AS element, idx.attnum = $4::INTEGER AS is_expr, CAST(idx.att_opclass AS BIGINT) AS att_opclass 
FROM (SELECT pg_catalog.pg_index.indexrelid AS indexrelid, pg_catalog.pg_index.indrelid AS indrelid, unnest(pg_catalog.pg_index.indkey) AS attnum, unnest(pg_catalog.pg_index.indclass) AS att_opclass, generate_subscripts(pg_catalog.pg_index.indkey, $5::INTEGER) AS ord 
FROM pg_catalog.pg_index 
WHERE NOT pg_catalog.pg_index.indisprimary AND pg_catalog.pg_index.indrelid IN ($6)) AS idx LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_attribute.attnum = idx.attnum AND pg_catalog.pg_attribute.attrelid = idx.indrelid 
WHERE idx.indrelid IN ($6)) AS idx_attr GROUP BY idx_attr.indexrelid) AS idx_cols ON pg_catalog.pg_index.indexrelid = idx_cols.indexrelid LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_index.indrelid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_index.indexrelid = pg_catalog.pg_constraint.conindid AND pg_catalog.pg_constraint.contype = ANY (ARRAY[$7::VARCHAR, $8::VARCHAR, $9::VARCHAR]) 
WHERE pg_catalog.pg_index.indrelid IN ($6) AND NOT pg_catalog.pg_index.indisprimary ORDER BY pg_catalog.pg_index.indrelid, pg_catalog.pg_class.relname;

-- [12] catalogue | extended | sent 4x | by: read_sql_table; read_sql(name); to_sql if_exists=replace; to_sql multi
-- parameters: $1 integer (Parse says smallint) = 0, $2 regclass (Parse says unspecified) = 'pg_catalog.pg_class', $3 character varying (Parse says unspecified) = 'r', $4 character varying (Parse says unspecified) = 'p', $5 character varying (Parse says unspecified) = 'f', $6 character varying (Parse says unspecified) = 'v', $7 character varying (Parse says unspecified) = 'm', $8 character varying (Parse says unspecified) = 'pg_catalog', $9 character varying (Parse says unspecified) = 'people'
-- wire: binary parameters
-- result: relname name, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_class.oid = pg_catalog.pg_description.objoid AND pg_catalog.pg_description.objsubid = $1::INTEGER AND pg_catalog.pg_description.classoid = CAST($2 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $8::VARCHAR AND pg_catalog.pg_class.relname IN ($9::VARCHAR);

-- [13] catalogue | extended | sent 4x | by: read_sql_table; read_sql(name); to_sql if_exists=replace; to_sql multi
-- parameters: $1 boolean = true, $2 character varying (Parse says unspecified) = 'c', $3 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $4 character varying (Parse says unspecified) = 'r', $5 character varying (Parse says unspecified) = 'p', $6 character varying (Parse says unspecified) = 'f', $7 character varying (Parse says unspecified) = 'v', $8 character varying (Parse says unspecified) = 'm', $9 character varying (Parse says unspecified) = 'pg_catalog', $10 character varying (Parse says unspecified) = 'people'
-- wire: binary parameters
-- result: relname name, conname name, anon_1 text, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname, CASE WHEN (pg_catalog.pg_constraint.oid IS NOT NULL) THEN pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, $1) END AS anon_1, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_class.oid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_constraint.contype = $2::VARCHAR LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($3 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $9::VARCHAR AND pg_catalog.pg_class.relname IN ($10::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname;

-- [14] catalogue | extended | sent 4x | by: read_sql_table; read_sql(name); to_sql if_exists=replace; to_sql multi
-- parameters: $1 character varying (Parse says unspecified) = 'default_table_access_method', $2 character varying (Parse says unspecified) = 'r', $3 character varying (Parse says unspecified) = 'p', $4 character varying (Parse says unspecified) = 'f', $5 character varying (Parse says unspecified) = 'v', $6 character varying (Parse says unspecified) = 'm', $7 character varying (Parse says unspecified) = 'pg_catalog', $8 character varying (Parse says unspecified) = 'people'
-- result: oid oid, relname name, reloptions text[], relhasoids text, access_method_name name, tablespace_name name, parent_table_names name[]
SELECT pg_catalog.pg_class.oid, pg_catalog.pg_class.relname, pg_catalog.pg_class.reloptions, NULL AS relhasoids, CASE WHEN (pg_catalog.pg_am.amname IS NOT NULL AND pg_catalog.pg_am.amname != current_setting($1::VARCHAR)) THEN pg_catalog.pg_am.amname ELSE NULL END AS access_method_name, pg_catalog.pg_tablespace.spcname AS tablespace_name, inherits.parent_table_names 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_am ON pg_catalog.pg_class.relam = pg_catalog.pg_am.oid LEFT OUTER JOIN (SELECT pg_catalog.pg_inherits.inhrelid AS inhrelid, array_agg(pg_catalog.pg_class.relname ORDER BY pg_catalog.pg_inherits.inhseqno) AS parent_table_names 
FROM pg_catalog.pg_inherits JOIN pg_catalog.pg_class ON pg_catalog.pg_inherits.inhparent = pg_catalog.pg_class.oid GROUP BY pg_catalog.pg_inherits.inhrelid) AS inherits ON pg_catalog.pg_class.oid = inherits.inhrelid LEFT OUTER JOIN pg_catalog.pg_tablespace ON pg_catalog.pg_tablespace.oid = pg_catalog.pg_class.reltablespace JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $7::VARCHAR AND pg_catalog.pg_class.relname IN ($8::VARCHAR);

-- [15] catalogue | extended | sent 1x | by: read_sql_table(schema)
-- parameters: $1 character varying (Parse says unspecified) = 'people', $2 character varying (Parse says unspecified) = 'r', $3 character varying (Parse says unspecified) = 'p', $4 character varying (Parse says unspecified) = 'f', $5 character varying (Parse says unspecified) = 'v', $6 character varying (Parse says unspecified) = 'm', $7 character varying (Parse says unspecified) = 'public'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relname IN ($1::VARCHAR) AND pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $7::VARCHAR;

-- [16] catalogue | extended | sent 1x | by: read_sql_table(schema)
-- parameters: $1 character varying (Parse says unspecified) = 'r', $2 character varying (Parse says unspecified) = 'p', $3 character varying (Parse says unspecified) = 't', $4 character varying (Parse says unspecified) = 'public'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR, $2::VARCHAR]) AND pg_catalog.pg_class.relpersistence != $3::VARCHAR AND pg_catalog.pg_namespace.nspname = $4::VARCHAR;

-- [17] catalogue | extended | sent 2x | by: read_sql_table(schema)
-- parameters: $1 character varying (Parse says unspecified) = 'v', $2 character varying (Parse says unspecified) = 't', $3 character varying (Parse says unspecified) = 'public'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR]) AND pg_catalog.pg_class.relpersistence != $2::VARCHAR AND pg_catalog.pg_namespace.nspname = $3::VARCHAR;

-- [18] catalogue | extended | sent 1x | by: read_sql_table(schema)
-- parameters: $1 character varying (Parse says unspecified) = '', $2 character varying (Parse says unspecified) = 'always', $3 character varying (Parse says unspecified) = 'a', $4 character varying (Parse says unspecified) = 'start', $5 character varying (Parse says unspecified) = 'increment', $6 character varying (Parse says unspecified) = 'minvalue', $7 character varying (Parse says unspecified) = 'maxvalue', $8 character varying (Parse says unspecified) = 'cache', $9 character varying (Parse says unspecified) = 'cycle', $10 character varying (Parse says unspecified) = '', $11 integer (Parse says smallint) = 0, $12 character varying (Parse says unspecified) = 'name', $13 character varying (Parse says unspecified) = 'schema', $14 smallint = 0, $15 character varying (Parse says unspecified) = 'r', $16 character varying (Parse says unspecified) = 'p', $17 character varying (Parse says unspecified) = 'f', $18 character varying (Parse says unspecified) = 'v', $19 character varying (Parse says unspecified) = 'm', $20 character varying (Parse says unspecified) = 'public', $21 character varying (Parse says unspecified) = 'people'
-- wire: binary parameters
-- result: name name, format_type text, default text, not_null boolean, table_name name, comment text, generated "char", identity_options json, collation json
SELECT pg_catalog.pg_attribute.attname AS name, pg_catalog.format_type(pg_catalog.pg_attribute.atttypid, pg_catalog.pg_attribute.atttypmod) AS format_type, CASE WHEN pg_catalog.pg_attribute.atthasdef THEN (SELECT pg_catalog.pg_get_expr(pg_catalog.pg_attrdef.adbin, pg_catalog.pg_attrdef.adrelid) AS pg_get_expr_1 
FROM pg_catalog.pg_attrdef 
WHERE pg_catalog.pg_attribute.atthasdef AND pg_catalog.pg_attrdef.adrelid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attrdef.adnum = pg_catalog.pg_attribute.attnum) ELSE NULL END AS "default", pg_catalog.pg_attribute.attnotnull AS not_null, pg_catalog.pg_class.relname AS table_name, pg_catalog.pg_description.description AS comment, pg_catalog.pg_attribute.attgenerated AS generated, CASE WHEN (pg_catalog.pg_attribute.attidentity != $1::VARCHAR) THEN (SELECT json_build_object($2::VARCHAR, pg_catalog.pg_attribute.attidentity = $3::VARCHAR, $4::VARCHAR, pg_catalog.pg_sequence.seqstart, $5::VARCHAR, pg_catalog.pg_sequence.seqincrement, $6::VARCHAR, pg_catalog.pg_sequence.seqmin, $7::VARCHAR, pg_catalog.pg_sequence.seqmax, $8::VARCHAR, pg_catalog.pg_sequence.seqcache, $9::VARCHAR, pg_catalog.pg_sequence.seqcycle) AS json_build_object_1 
FROM pg_catalog.pg_sequence 
WHERE pg_catalog.pg_attribute.attidentity != $10::VARCHAR AND pg_catalog.pg_sequence.seqrelid = CAST(CAST(pg_catalog.pg_get_serial_sequence(CAST(CAST(pg_catalog.pg_attribute.attrelid AS REGCLASS) AS TEXT), pg_catalog.pg_attribute.attname) AS REGCLASS) AS OID)) ELSE NULL END AS identity_options, CASE WHEN (pg_catalog.pg_attribute.attcollation != $11::INTEGER AND (SELECT pg_catalog.pg_type.typcollation 
FROM pg_catalog.pg_type 
WHERE pg_catalog.pg_type.oid = pg_catalog.pg_attribute.atttypid) != pg_catalog.pg_attribute.attcollation) THEN (SELECT json_build_object($12::VARCHAR, pg_catalog.pg_collation.collname, $13::VARCHAR, CASE WHEN pg_catalog.pg_collation_is_visible(pg_catalog.pg_collation.oid) THEN NULL ELSE pg_catalog.pg_namespace.nspname END) AS json_build_object_9 
FROM pg_catalog.pg_collation JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_collation.collnamespace 
WHERE pg_catalog.pg_collation.oid = pg_catalog.pg_attribute.attcollation) ELSE NULL END AS collation 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_class.oid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attribute.attnum > $14::SMALLINT AND NOT pg_catalog.pg_attribute.attisdropped LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_description.objsubid = pg_catalog.pg_attribute.attnum JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$15::VARCHAR, $16::VARCHAR, $17::VARCHAR, $18::VARCHAR, $19::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $20::VARCHAR AND pg_catalog.pg_class.relname IN ($21::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_attribute.attnum;

-- [19] catalogue | extended | sent 1x | by: read_sql_table(schema)
-- parameters: $1 character varying (Parse says unspecified) = 'r', $2 character varying (Parse says unspecified) = 'p', $3 character varying (Parse says unspecified) = 'f', $4 character varying (Parse says unspecified) = 'v', $5 character varying (Parse says unspecified) = 'm', $6 character varying (Parse says unspecified) = 'public', $7 character varying (Parse says unspecified) = 'people'
-- result: oid oid, relname name
SELECT pg_catalog.pg_class.oid, pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $6::VARCHAR AND pg_catalog.pg_class.relname IN ($7::VARCHAR);

-- [20] catalogue | extended | sent 1x | by: read_sql_table(schema)
-- parameters: $1 boolean = true, $2 character varying (Parse says unspecified) = 'f', $3 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $4 character varying (Parse says unspecified) = 'r', $5 character varying (Parse says unspecified) = 'p', $6 character varying (Parse says unspecified) = 'f', $7 character varying (Parse says unspecified) = 'v', $8 character varying (Parse says unspecified) = 'm', $9 character varying (Parse says unspecified) = 'public', $10 character varying (Parse says unspecified) = 'people'
-- wire: binary parameters
-- result: relname name, conname name, anon_1 text, nspname name, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname, CASE WHEN (pg_catalog.pg_constraint.oid IS NOT NULL) THEN pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, $1) END AS anon_1, nsp_ref.nspname, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_class.oid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_constraint.contype = $2::VARCHAR LEFT OUTER JOIN pg_catalog.pg_class AS cls_ref ON cls_ref.oid = pg_catalog.pg_constraint.confrelid LEFT OUTER JOIN pg_catalog.pg_namespace AS nsp_ref ON cls_ref.relnamespace = nsp_ref.oid LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($3 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $9::VARCHAR AND pg_catalog.pg_class.relname IN ($10::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname;

-- [21] catalogue | extended | sent 1x | by: read_sql_table(schema)
-- parameters: $1 integer (Parse says smallint) = 0, $2 regclass (Parse says unspecified) = 'pg_catalog.pg_class', $3 character varying (Parse says unspecified) = 'r', $4 character varying (Parse says unspecified) = 'p', $5 character varying (Parse says unspecified) = 'f', $6 character varying (Parse says unspecified) = 'v', $7 character varying (Parse says unspecified) = 'm', $8 character varying (Parse says unspecified) = 'public', $9 character varying (Parse says unspecified) = 'people'
-- wire: binary parameters
-- result: relname name, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_class.oid = pg_catalog.pg_description.objoid AND pg_catalog.pg_description.objsubid = $1::INTEGER AND pg_catalog.pg_description.classoid = CAST($2 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $8::VARCHAR AND pg_catalog.pg_class.relname IN ($9::VARCHAR);

-- [22] catalogue | extended | sent 1x | by: read_sql_table(schema)
-- parameters: $1 boolean = true, $2 character varying (Parse says unspecified) = 'c', $3 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $4 character varying (Parse says unspecified) = 'r', $5 character varying (Parse says unspecified) = 'p', $6 character varying (Parse says unspecified) = 'f', $7 character varying (Parse says unspecified) = 'v', $8 character varying (Parse says unspecified) = 'm', $9 character varying (Parse says unspecified) = 'public', $10 character varying (Parse says unspecified) = 'people'
-- wire: binary parameters
-- result: relname name, conname name, anon_1 text, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname, CASE WHEN (pg_catalog.pg_constraint.oid IS NOT NULL) THEN pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, $1) END AS anon_1, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_class.oid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_constraint.contype = $2::VARCHAR LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($3 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $9::VARCHAR AND pg_catalog.pg_class.relname IN ($10::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname;

-- [23] catalogue | extended | sent 1x | by: read_sql_table(schema)
-- parameters: $1 character varying (Parse says unspecified) = 'default_table_access_method', $2 character varying (Parse says unspecified) = 'r', $3 character varying (Parse says unspecified) = 'p', $4 character varying (Parse says unspecified) = 'f', $5 character varying (Parse says unspecified) = 'v', $6 character varying (Parse says unspecified) = 'm', $7 character varying (Parse says unspecified) = 'public', $8 character varying (Parse says unspecified) = 'people'
-- result: oid oid, relname name, reloptions text[], relhasoids text, access_method_name name, tablespace_name name, parent_table_names name[]
SELECT pg_catalog.pg_class.oid, pg_catalog.pg_class.relname, pg_catalog.pg_class.reloptions, NULL AS relhasoids, CASE WHEN (pg_catalog.pg_am.amname IS NOT NULL AND pg_catalog.pg_am.amname != current_setting($1::VARCHAR)) THEN pg_catalog.pg_am.amname ELSE NULL END AS access_method_name, pg_catalog.pg_tablespace.spcname AS tablespace_name, inherits.parent_table_names 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_am ON pg_catalog.pg_class.relam = pg_catalog.pg_am.oid LEFT OUTER JOIN (SELECT pg_catalog.pg_inherits.inhrelid AS inhrelid, array_agg(pg_catalog.pg_class.relname ORDER BY pg_catalog.pg_inherits.inhseqno) AS parent_table_names 
FROM pg_catalog.pg_inherits JOIN pg_catalog.pg_class ON pg_catalog.pg_inherits.inhparent = pg_catalog.pg_class.oid GROUP BY pg_catalog.pg_inherits.inhrelid) AS inherits ON pg_catalog.pg_class.oid = inherits.inhrelid LEFT OUTER JOIN pg_catalog.pg_tablespace ON pg_catalog.pg_tablespace.oid = pg_catalog.pg_class.reltablespace JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $7::VARCHAR AND pg_catalog.pg_class.relname IN ($8::VARCHAR);

-- [24] catalogue | extended | sent 1x | by: read_sql(chunksize)
-- parameters: $1 character varying (Parse says unspecified) = 'select id from people', $2 character varying (Parse says unspecified) = 'r', $3 character varying (Parse says unspecified) = 'p', $4 character varying (Parse says unspecified) = 'f', $5 character varying (Parse says unspecified) = 'v', $6 character varying (Parse says unspecified) = 'm', $7 character varying (Parse says unspecified) = 'pg_catalog'
-- result: DECLARE CURSOR
DECLARE <cursor> CURSOR FOR SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relname IN ($1::VARCHAR) AND pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $7::VARCHAR;

-- [25] session | simple | sent 10x | by: read_sql_table; read_sql_table(schema); read_sql_query; read_sql(name); read_sql(chunksize); … (9 actions)
-- result: BEGIN
BEGIN;

-- [26] session | simple | sent 1x | by: read_sql_table
-- result: version text
select pg_catalog.version();

-- [27] session | simple | sent 1x | by: read_sql_table
-- result: current_schema name
select current_schema();

-- [28] session | simple | sent 1x | by: read_sql_table
-- result: transaction_isolation text
show transaction isolation level;

-- [29] session | simple | sent 1x | by: read_sql_table
-- result: standard_conforming_strings text
show standard_conforming_strings;

-- [30] session | simple | sent 1x | by: read_sql_table
-- result: SAVEPOINT
SAVEPOINT "_pg3_1";

-- [31] session | simple | sent 1x | by: read_sql_table
-- result: RELEASE
RELEASE "_pg3_1";

-- [32] session | simple | sent 4x | by: read_sql_table; read_sql_query; read_sql(name); to_sql if_exists=replace
-- result: ROLLBACK
ROLLBACK;

-- [33] session | simple | sent 6x | by: read_sql_table; read_sql_table(schema); to_sql if_exists=fail; to_sql if_exists=replace; to_sql if_exists=append; … (6 actions)
-- result: COMMIT
COMMIT;

-- [34] session | simple | sent 2x | by: read_sql(chunksize)
-- result: relname name
FETCH FORWARD 1 FROM <cursor>;

-- [35] session | simple | sent 1x | by: read_sql(chunksize)
-- result: relname name
FETCH FORWARD 5 FROM <cursor>;

-- [36] session | simple | sent 2x | by: read_sql(chunksize)
-- result: CLOSE CURSOR
CLOSE <cursor>;

-- [37] session | extended | sent 1x | by: read_sql(chunksize)
-- result: DECLARE CURSOR
DECLARE <cursor> CURSOR FOR select id from people;

-- [38] session | simple | sent 1x | by: read_sql(chunksize)
-- result: id text
FETCH FORWARD 9 FROM <cursor>;

-- [39] session | simple | sent 5x | by: read_sql(chunksize)
-- result: id text
FETCH FORWARD 10 FROM <cursor>;

-- [40] session | simple | sent 2x | by: to_sql if_exists=replace; to_sql multi
-- result: DEALLOCATE ALL
DEALLOCATE ALL;

-- [41] data | simple | sent 2x | by: read_sql_table; read_sql(name)
-- result: id text, doc jsonb
SELECT people.id, people.doc 
FROM people;

-- [42] data | simple | sent 1x | by: read_sql_table(schema)
-- result: id text
SELECT public.people.id 
FROM public.people;

-- [43] data | simple | sent 1x | by: read_sql_query
-- result: id text
select id from people limit 3;

-- [44] data | simple | sent 3x | by: to_sql if_exists=fail; to_sql if_exists=replace; to_sql multi
-- result: CREATE TABLE
CREATE TABLE tmp_pd (
	index BIGINT, 
	a BIGINT, 
	b TEXT, 
	t TIMESTAMP WITHOUT TIME ZONE
);

-- [45] data | simple | sent 3x | by: to_sql if_exists=fail; to_sql if_exists=replace; to_sql multi
-- result: CREATE INDEX
CREATE INDEX ix_tmp_pd_index ON tmp_pd (index);

-- [46] data | extended | sent 2x | by: to_sql if_exists=fail; to_sql if_exists=replace
-- parameters: $1 unspecified (Parse says smallint) = 0, $2 unspecified (Parse says smallint) = 1, $3 unspecified = 'x', $4 unspecified (Parse says timestamp without time zone) = \x00023e0786c26000
-- wire: binary parameters, named statement
-- result: INSERT n n
INSERT INTO tmp_pd (index, a, b, t) VALUES ($1::BIGINT, $2::BIGINT, $3::VARCHAR, $4::TIMESTAMP WITHOUT TIME ZONE);

-- [47] data | simple | sent 2x | by: to_sql if_exists=replace; to_sql multi
-- result: DROP TABLE
DROP TABLE tmp_pd;

-- [48] data | extended | sent 1x | by: to_sql if_exists=append
-- parameters: $1 unspecified (Parse says smallint) = 1, $2 unspecified = 'x', $3 unspecified (Parse says timestamp without time zone) = \x00023e0786c26000
-- wire: binary parameters, named statement
-- result: INSERT n n
INSERT INTO tmp_pd (a, b, t) VALUES ($1::BIGINT, $2::VARCHAR, $3::TIMESTAMP WITHOUT TIME ZONE);

-- [49] data | extended | sent 1x | by: to_sql multi
-- parameters: $1 unspecified (Parse says smallint) = 0, $2 unspecified (Parse says smallint) = 1, $3 unspecified = 'x', $4 unspecified (Parse says timestamp without time zone) = \x00023e0786c26000, $5 unspecified (Parse says smallint) = 1, $6 unspecified (Parse says smallint) = 2, $7 unspecified = 'y', $8 unspecified (Parse says timestamp without time zone) = \x00023e0786c26000
-- wire: binary parameters
-- result: INSERT n n
INSERT INTO tmp_pd (index, a, b, t) VALUES ($1::BIGINT, $2::BIGINT, $3::VARCHAR, $4::TIMESTAMP WITHOUT TIME ZONE), ($5::BIGINT, $6::BIGINT, $7::VARCHAR, $8::TIMESTAMP WITHOUT TIME ZONE);
