-- sqlalchemy-pg8000: SQLAlchemy 2.1.9, dialect pg8000
-- 86 statements: 47 catalogue, 20 session, 19 data

-- [1] catalogue | extended | sent 1x | by: get_schema_names
-- parameters: $1 character varying (Parse says unspecified) = 'pg/_'
-- result: nspname name
SELECT pg_catalog.pg_namespace.nspname 
FROM pg_catalog.pg_namespace 
WHERE (pg_catalog.pg_namespace.nspname NOT LIKE $1::VARCHAR || '%' ESCAPE '/') ORDER BY pg_catalog.pg_namespace.nspname;

-- [2] catalogue | extended | sent 2x | by: get_table_names; MetaData.reflect
-- parameters: $1 character varying (Parse says unspecified) = 'r', $2 character varying (Parse says unspecified) = 'p', $3 character varying (Parse says unspecified) = 't', $4 character varying (Parse says unspecified) = 'pg_catalog'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR, $2::VARCHAR]) AND pg_catalog.pg_class.relpersistence != $3::VARCHAR AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $4::VARCHAR;

-- [3] catalogue | extended | sent 2x | by: get_table_names(schema); MetaData.reflect(views, schema)
-- parameters: $1 character varying (Parse says unspecified) = 'r', $2 character varying (Parse says unspecified) = 'p', $3 character varying (Parse says unspecified) = 't', $4 character varying (Parse says unspecified) = 'public'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR, $2::VARCHAR]) AND pg_catalog.pg_class.relpersistence != $3::VARCHAR AND pg_catalog.pg_namespace.nspname = $4::VARCHAR;

-- [4] catalogue | extended | sent 1x | by: get_temp_table_names
-- parameters: $1 character varying (Parse says unspecified) = 'r', $2 character varying (Parse says unspecified) = 'p', $3 character varying (Parse says unspecified) = 't', $4 character varying (Parse says unspecified) = 'pg_catalog'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR, $2::VARCHAR]) AND pg_catalog.pg_class.relpersistence = $3::VARCHAR AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $4::VARCHAR;

-- [5] catalogue | extended | sent 2x | by: get_view_names; get_materialized_view_names
-- parameters: $1 character varying (Parse says unspecified) = 'v', $2 character varying (Parse says unspecified) = 't', $3 character varying (Parse says unspecified) = 'pg_catalog'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR]) AND pg_catalog.pg_class.relpersistence != $2::VARCHAR AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $3::VARCHAR;

-- [6] catalogue | extended | sent 1x | by: get_temp_view_names
-- parameters: $1 character varying (Parse says unspecified) = 'v', $2 character varying (Parse says unspecified) = 't', $3 character varying (Parse says unspecified) = 'pg_catalog'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR]) AND pg_catalog.pg_class.relpersistence = $2::VARCHAR AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $3::VARCHAR;

-- [7] catalogue | extended | sent 2x | by: get_sequence_names; get_foreign_table_names
-- parameters: $1 character varying (Parse says unspecified) = 'S', $2 character varying (Parse says unspecified) = 'pg_catalog'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $2::VARCHAR;

-- [8] catalogue | extended | sent 1x | by: get_view_definition
-- parameters: $1 character varying (Parse says unspecified) = 'adults', $2 character varying (Parse says unspecified) = 'v', $3 character varying (Parse says unspecified) = 'm', $4 character varying (Parse says unspecified) = 'pg_catalog'
-- result: pg_get_viewdef_1 text
SELECT pg_catalog.pg_get_viewdef(pg_catalog.pg_class.oid) AS pg_get_viewdef_1 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relname = $1::VARCHAR AND pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $4::VARCHAR;

-- [9] catalogue | extended | sent 2x | by: get_columns; Table(autoload_with)
-- parameters: $1 character varying (Parse says unspecified) = '', $2 character varying (Parse says unspecified) = 'always', $3 character varying (Parse says unspecified) = 'a', $4 character varying (Parse says unspecified) = 'start', $5 character varying (Parse says unspecified) = 'increment', $6 character varying (Parse says unspecified) = 'minvalue', $7 character varying (Parse says unspecified) = 'maxvalue', $8 character varying (Parse says unspecified) = 'cache', $9 character varying (Parse says unspecified) = 'cycle', $10 character varying (Parse says unspecified) = '', $11 integer (Parse says unspecified) = '0', $12 character varying (Parse says unspecified) = 'name', $13 character varying (Parse says unspecified) = 'schema', $14 smallint (Parse says unspecified) = '0', $15 character varying (Parse says unspecified) = 'r', $16 character varying (Parse says unspecified) = 'p', $17 character varying (Parse says unspecified) = 'f', $18 character varying (Parse says unspecified) = 'v', $19 character varying (Parse says unspecified) = 'm', $20 character varying (Parse says unspecified) = 'pg_catalog', $21 character varying (Parse says unspecified) = 'people'
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

-- [10] catalogue | extended | sent 1x | by: get_columns(schema)
-- parameters: $1 character varying (Parse says unspecified) = '', $2 character varying (Parse says unspecified) = 'always', $3 character varying (Parse says unspecified) = 'a', $4 character varying (Parse says unspecified) = 'start', $5 character varying (Parse says unspecified) = 'increment', $6 character varying (Parse says unspecified) = 'minvalue', $7 character varying (Parse says unspecified) = 'maxvalue', $8 character varying (Parse says unspecified) = 'cache', $9 character varying (Parse says unspecified) = 'cycle', $10 character varying (Parse says unspecified) = '', $11 integer (Parse says unspecified) = '0', $12 character varying (Parse says unspecified) = 'name', $13 character varying (Parse says unspecified) = 'schema', $14 smallint (Parse says unspecified) = '0', $15 character varying (Parse says unspecified) = 'r', $16 character varying (Parse says unspecified) = 'p', $17 character varying (Parse says unspecified) = 'f', $18 character varying (Parse says unspecified) = 'v', $19 character varying (Parse says unspecified) = 'm', $20 character varying (Parse says unspecified) = 'public', $21 character varying (Parse says unspecified) = 'people'
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

-- [11] catalogue | extended | sent 2x | by: get_pk_constraint; Table(autoload_with)
-- parameters: $1 character varying (Parse says unspecified) = 'r', $2 character varying (Parse says unspecified) = 'p', $3 character varying (Parse says unspecified) = 'f', $4 character varying (Parse says unspecified) = 'v', $5 character varying (Parse says unspecified) = 'm', $6 character varying (Parse says unspecified) = 'pg_catalog', $7 character varying (Parse says unspecified) = 'people'
-- result: oid oid, relname name
SELECT pg_catalog.pg_class.oid, pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $6::VARCHAR AND pg_catalog.pg_class.relname IN ($7::VARCHAR);

-- [12] catalogue | extended | sent 4x | by: get_pk_constraint; get_unique_constraints; Table(autoload_with)
-- parameters: $1 integer (Parse says unspecified) = '1', $2 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $3 character varying (Parse says unspecified) = 'p', $4 oid (Parse says unspecified) = '<oid:people>', $5 oid (Parse says unspecified) = '<oid:people>'
-- result: conrelid oid, cols text[], conname name, description text, indnkeyatts smallint, indnullsnotdistinct boolean
SELECT attr.conrelid, array_agg(CAST(attr.attname AS TEXT) ORDER BY attr.ord) AS cols, attr.conname, min(attr.description) AS description, min(attr.indnkeyatts) AS indnkeyatts, bool_and(attr.indnullsnotdistinct) AS indnullsnotdistinct 
FROM (SELECT con.conrelid AS conrelid, con.conname AS conname, con.description AS description, con.ord AS ord, con.indnkeyatts AS indnkeyatts, con.indnullsnotdistinct AS indnullsnotdistinct, pg_catalog.pg_attribute.attname AS attname 
FROM pg_catalog.pg_attribute JOIN (SELECT pg_catalog.pg_constraint.conrelid AS conrelid, pg_catalog.pg_constraint.conname AS conname, unnest(pg_catalog.pg_index.indkey) AS attnum, generate_subscripts(pg_catalog.pg_index.indkey, $1::INTEGER) AS ord, pg_catalog.pg_index.indnkeyatts AS indnkeyatts, pg_catalog.pg_index.indnullsnotdistinct AS indnullsnotdistinct, pg_catalog.pg_description.description AS description 
FROM pg_catalog.pg_constraint JOIN pg_catalog.pg_index ON pg_catalog.pg_constraint.conindid = pg_catalog.pg_index.indexrelid LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($2 AS REGCLASS) 
WHERE pg_catalog.pg_constraint.contype = $3::VARCHAR AND pg_catalog.pg_constraint.conrelid IN ($4)) AS con ON pg_catalog.pg_attribute.attnum = con.attnum AND pg_catalog.pg_attribute.attrelid = con.conrelid 
WHERE con.conrelid IN ($5)) AS attr GROUP BY attr.conrelid, attr.conname ORDER BY attr.conrelid, attr.conname;

-- [13] catalogue | extended | sent 1x | by: get_indexes
-- parameters: $1 character varying (Parse says unspecified) = 'btree'
-- result: oid oid, amname name
SELECT pg_catalog.pg_am.oid, pg_catalog.pg_am.amname 
FROM pg_catalog.pg_am 
WHERE pg_catalog.pg_am.amname = $1::VARCHAR;

-- [14] catalogue | simple | sent 5x | by: get_indexes; get_multi_indexes(schema); MetaData.reflect; MetaData.reflect(views, schema); Table(autoload_with)
-- result: oid oid, opcname name
SELECT pg_catalog.pg_opclass.oid, pg_catalog.pg_opclass.opcname 
FROM pg_catalog.pg_opclass 
WHERE NOT pg_catalog.pg_opclass.opcdefault;

-- [15] catalogue | extended | sent 2x | by: get_indexes; Table(autoload_with)
-- parameters: $1 integer (Parse says unspecified) = '0', $2 integer (Parse says unspecified) = '1', $3 boolean (Parse says unspecified) = 'true', $4 integer (Parse says unspecified) = '0', $5 integer (Parse says unspecified) = '1', $6 oid (Parse says unspecified) = '<oid:people>', $7 oid (Parse says unspecified) = '<oid:people>', $8 character varying (Parse says unspecified) = 'p', $9 character varying (Parse says unspecified) = 'u', $10 character varying (Parse says unspecified) = 'x', $11 oid (Parse says unspecified) = '<oid:people>'
-- result: indrelid oid, relname name, indisunique boolean, indisvalid boolean, has_constraint boolean, indoption int2vector, reloptions text[], relam oid, filter_definition text, indnkeyatts smallint, indnullsnotdistinct boolean, elements text[], elements_is_expr boolean[], elements_opclass bigint[]
SELECT pg_catalog.pg_index.indrelid, pg_catalog.pg_class.relname, pg_catalog.pg_index.indisunique, pg_catalog.pg_index.indisvalid, pg_catalog.pg_constraint.conrelid IS NOT NULL AS has_constraint, pg_catalog.pg_index.indoption, pg_catalog.pg_class.reloptions, pg_catalog.pg_class.relam, CASE WHEN (pg_catalog.pg_index.indpred IS NOT NULL) THEN pg_catalog.pg_get_expr(pg_catalog.pg_index.indpred, pg_catalog.pg_index.indrelid) END AS filter_definition, pg_catalog.pg_index.indnkeyatts, pg_catalog.pg_index.indnullsnotdistinct, idx_cols.elements, idx_cols.elements_is_expr, idx_cols.elements_opclass 
FROM pg_catalog.pg_index JOIN pg_catalog.pg_class ON pg_catalog.pg_index.indexrelid = pg_catalog.pg_class.oid LEFT OUTER JOIN (SELECT idx_attr.indexrelid AS indexrelid, min(idx_attr.indrelid) AS min_1, array_agg(idx_attr.element ORDER BY idx_attr.ord) AS elements, array_agg(idx_attr.is_expr ORDER BY idx_attr.ord) AS elements_is_expr, array_agg(idx_attr.att_opclass ORDER BY idx_attr.ord) AS elements_opclass 
FROM (SELECT idx.indexrelid AS indexrelid, idx.indrelid AS indrelid, idx.ord AS ord, CASE WHEN (idx.attnum = $1::INTEGER) THEN pg_catalog.pg_get_indexdef(idx.indexrelid, idx.ord + $2::INTEGER, $3::BOOLEAN) ELSE CAST(pg_catalog.pg_attribute.attname AS TEXT) END AS element, idx.attnum = $4::INTEGER AS is_expr, CAST(idx.att_opclass AS BIGINT) AS att_opclass 
FROM (SELECT pg_catalog.pg_index.indexrelid AS indexrelid, pg_catalog.pg_index.indrelid AS indrelid, unnest(pg_catalog.pg_index.indkey) AS attnum, unnest(pg_catalog.pg_index.indclass) AS att_opclass, generate_subscripts(pg_catalog.pg_index.indkey, $5::INTEGER) AS ord 
FROM pg_catalog.pg_index 
WHERE NOT pg_catalog.pg_index.indisprimary AND pg_catalog.pg_index.indrelid IN ($6)) AS idx LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_attribute.attnum = idx.attnum AND pg_catalog.pg_attribute.attrelid = idx.indrelid 
WHERE idx.indrelid IN ($7)) AS idx_attr GROUP BY idx_attr.indexrelid) AS idx_cols ON pg_catalog.pg_index.indexrelid = idx_cols.indexrelid LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_index.indrelid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_index.indexrelid = pg_catalog.pg_constraint.conindid AND pg_catalog.pg_constraint.contype = ANY (ARRAY[$8::VARCHAR, $9::VARCHAR, $10::VARCHAR]) 
WHERE pg_catalog.pg_index.indrelid IN ($11) AND NOT pg_catalog.pg_index.indisprimary ORDER BY pg_catalog.pg_index.indrelid, pg_catalog.pg_class.relname;

-- [16] catalogue | extended | sent 2x | by: get_foreign_keys; Table(autoload_with)
-- parameters: $1 boolean (Parse says unspecified) = 'true', $2 character varying (Parse says unspecified) = 'f', $3 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $4 character varying (Parse says unspecified) = 'r', $5 character varying (Parse says unspecified) = 'p', $6 character varying (Parse says unspecified) = 'f', $7 character varying (Parse says unspecified) = 'v', $8 character varying (Parse says unspecified) = 'm', $9 character varying (Parse says unspecified) = 'pg_catalog', $10 character varying (Parse says unspecified) = 'people'
-- result: relname name, conname name, anon_1 text, nspname name, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname, CASE WHEN (pg_catalog.pg_constraint.oid IS NOT NULL) THEN pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, $1::BOOLEAN) END AS anon_1, nsp_ref.nspname, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_class.oid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_constraint.contype = $2::VARCHAR LEFT OUTER JOIN pg_catalog.pg_class AS cls_ref ON cls_ref.oid = pg_catalog.pg_constraint.confrelid LEFT OUTER JOIN pg_catalog.pg_namespace AS nsp_ref ON cls_ref.relnamespace = nsp_ref.oid LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($3 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $9::VARCHAR AND pg_catalog.pg_class.relname IN ($10::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname;

-- [17] catalogue | extended | sent 2x | by: get_check_constraints; Table(autoload_with)
-- parameters: $1 boolean (Parse says unspecified) = 'true', $2 character varying (Parse says unspecified) = 'c', $3 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $4 character varying (Parse says unspecified) = 'r', $5 character varying (Parse says unspecified) = 'p', $6 character varying (Parse says unspecified) = 'f', $7 character varying (Parse says unspecified) = 'v', $8 character varying (Parse says unspecified) = 'm', $9 character varying (Parse says unspecified) = 'pg_catalog', $10 character varying (Parse says unspecified) = 'people'
-- result: relname name, conname name, anon_1 text, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname, CASE WHEN (pg_catalog.pg_constraint.oid IS NOT NULL) THEN pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, $1::BOOLEAN) END AS anon_1, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_class.oid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_constraint.contype = $2::VARCHAR LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($3 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $9::VARCHAR AND pg_catalog.pg_class.relname IN ($10::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname;

-- [18] catalogue | extended | sent 2x | by: get_table_comment; Table(autoload_with)
-- parameters: $1 integer (Parse says unspecified) = '0', $2 regclass (Parse says unspecified) = 'pg_catalog.pg_class', $3 character varying (Parse says unspecified) = 'r', $4 character varying (Parse says unspecified) = 'p', $5 character varying (Parse says unspecified) = 'f', $6 character varying (Parse says unspecified) = 'v', $7 character varying (Parse says unspecified) = 'm', $8 character varying (Parse says unspecified) = 'pg_catalog', $9 character varying (Parse says unspecified) = 'people'
-- result: relname name, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_class.oid = pg_catalog.pg_description.objoid AND pg_catalog.pg_description.objsubid = $1::INTEGER AND pg_catalog.pg_description.classoid = CAST($2 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $8::VARCHAR AND pg_catalog.pg_class.relname IN ($9::VARCHAR);

-- [19] catalogue | extended | sent 2x | by: get_table_options; Table(autoload_with)
-- parameters: $1 character varying (Parse says unspecified) = 'default_table_access_method', $2 character varying (Parse says unspecified) = 'r', $3 character varying (Parse says unspecified) = 'p', $4 character varying (Parse says unspecified) = 'f', $5 character varying (Parse says unspecified) = 'v', $6 character varying (Parse says unspecified) = 'm', $7 character varying (Parse says unspecified) = 'pg_catalog', $8 character varying (Parse says unspecified) = 'people'
-- result: oid oid, relname name, reloptions text[], relhasoids text, access_method_name name, tablespace_name name, parent_table_names name[]
SELECT pg_catalog.pg_class.oid, pg_catalog.pg_class.relname, pg_catalog.pg_class.reloptions, NULL AS relhasoids, CASE WHEN (pg_catalog.pg_am.amname IS NOT NULL AND pg_catalog.pg_am.amname != current_setting($1::VARCHAR)) THEN pg_catalog.pg_am.amname ELSE NULL END AS access_method_name, pg_catalog.pg_tablespace.spcname AS tablespace_name, inherits.parent_table_names 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_am ON pg_catalog.pg_class.relam = pg_catalog.pg_am.oid LEFT OUTER JOIN (SELECT pg_catalog.pg_inherits.inhrelid AS inhrelid, array_agg(pg_catalog.pg_class.relname ORDER BY pg_catalog.pg_inherits.inhseqno) AS parent_table_names 
FROM pg_catalog.pg_inherits JOIN pg_catalog.pg_class ON pg_catalog.pg_inherits.inhparent = pg_catalog.pg_class.oid GROUP BY pg_catalog.pg_inherits.inhrelid) AS inherits ON pg_catalog.pg_class.oid = inherits.inhrelid LEFT OUTER JOIN pg_catalog.pg_tablespace ON pg_catalog.pg_tablespace.oid = pg_catalog.pg_class.reltablespace JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $7::VARCHAR AND pg_catalog.pg_class.relname IN ($8::VARCHAR);

-- [20] catalogue | extended | sent 4x | by: has_table; create_all(checkfirst); create_all (new table, enum, index, comment); drop_all
-- parameters: $1 character varying (Parse says unspecified) = 'people', $2 character varying (Parse says unspecified) = 'r', $3 character varying (Parse says unspecified) = 'p', $4 character varying (Parse says unspecified) = 'f', $5 character varying (Parse says unspecified) = 'v', $6 character varying (Parse says unspecified) = 'm', $7 character varying (Parse says unspecified) = 'pg_catalog'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relname IN ($1::VARCHAR) AND pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $7::VARCHAR;

-- [21] catalogue | extended | sent 1x | by: has_table(schema)
-- parameters: $1 character varying (Parse says unspecified) = 'people', $2 character varying (Parse says unspecified) = 'r', $3 character varying (Parse says unspecified) = 'p', $4 character varying (Parse says unspecified) = 'f', $5 character varying (Parse says unspecified) = 'v', $6 character varying (Parse says unspecified) = 'm', $7 character varying (Parse says unspecified) = 'public'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relname IN ($1::VARCHAR) AND pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $7::VARCHAR;

-- [22] catalogue | extended | sent 1x | by: has_sequence
-- parameters: $1 character varying (Parse says unspecified) = 'S', $2 character varying (Parse says unspecified) = 's', $3 character varying (Parse says unspecified) = 'pg_catalog'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = $1::VARCHAR AND pg_catalog.pg_class.relname = $2::VARCHAR AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $3::VARCHAR;

-- [23] catalogue | extended | sent 1x | by: has_schema
-- parameters: $1 character varying (Parse says unspecified) = 'public'
-- result: nspname name
SELECT pg_catalog.pg_namespace.nspname 
FROM pg_catalog.pg_namespace 
WHERE pg_catalog.pg_namespace.nspname = $1::VARCHAR;

-- [24] catalogue | extended | sent 1x | by: get_enums
-- parameters: $1 character varying (Parse says unspecified) = 'e', $2 character varying (Parse says unspecified) = 'pg_catalog'
-- result: name name, visible boolean, schema name, labels text[]
SELECT pg_catalog.pg_type.typname AS name, pg_catalog.pg_type_is_visible(pg_catalog.pg_type.oid) AS visible, pg_catalog.pg_namespace.nspname AS schema, lbl_agg.labels AS labels 
FROM pg_catalog.pg_type JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_type.typnamespace LEFT OUTER JOIN (SELECT pg_catalog.pg_enum.enumtypid AS enumtypid, array_agg(CAST(pg_catalog.pg_enum.enumlabel AS TEXT) ORDER BY pg_catalog.pg_enum.enumsortorder) AS labels 
FROM pg_catalog.pg_enum GROUP BY pg_catalog.pg_enum.enumtypid) AS lbl_agg ON pg_catalog.pg_type.oid = lbl_agg.enumtypid 
WHERE pg_catalog.pg_type.typtype = $1::VARCHAR AND pg_catalog.pg_type_is_visible(pg_catalog.pg_type.oid) AND pg_catalog.pg_namespace.nspname != $2::VARCHAR ORDER BY pg_catalog.pg_namespace.nspname, pg_catalog.pg_type.typname;

-- [25] catalogue | extended | sent 1x | by: get_domains
-- parameters: $1 boolean (Parse says unspecified) = 'true', $2 integer (Parse says unspecified) = '0', $3 character varying (Parse says unspecified) = 'd', $4 character varying (Parse says unspecified) = 'pg_catalog'
-- result: name name, attype text, nullable boolean, default text, visible boolean, schema name, condefs text[], connames text[], collname name, collation_schema name
SELECT pg_catalog.pg_type.typname AS name, pg_catalog.format_type(pg_catalog.pg_type.typbasetype, pg_catalog.pg_type.typtypmod) AS attype, NOT pg_catalog.pg_type.typnotnull AS nullable, pg_catalog.pg_type.typdefault AS "default", pg_catalog.pg_type_is_visible(pg_catalog.pg_type.oid) AS visible, pg_catalog.pg_namespace.nspname AS schema, domain_constraints.condefs, domain_constraints.connames, pg_catalog.pg_collation.collname, CASE WHEN (pg_catalog.pg_collation.oid IS NULL) THEN NULL WHEN pg_catalog.pg_collation_is_visible(pg_catalog.pg_collation.oid) THEN NULL ELSE collation_namespace.nspname END AS collation_schema 
FROM pg_catalog.pg_type JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_type.typnamespace LEFT OUTER JOIN pg_catalog.pg_collation ON pg_catalog.pg_type.typcollation = pg_catalog.pg_collation.oid LEFT OUTER JOIN pg_catalog.pg_namespace AS collation_namespace ON collation_namespace.oid = pg_catalog.pg_collation.collnamespace LEFT OUTER JOIN (SELECT pg_catalog.pg_constraint.contypid AS contypid, array_agg(pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, $1::BOOLEAN)) AS condefs, array_agg(CAST(pg_catalog.pg_constraint.conname AS TEXT)) AS connames 
FROM pg_catalog.pg_constraint 
WHERE pg_catalog.pg_constraint.contypid != $2::INTEGER GROUP BY pg_catalog.pg_constraint.contypid) AS domain_constraints ON pg_catalog.pg_type.oid = domain_constraints.contypid 
WHERE pg_catalog.pg_type.typtype = $3::VARCHAR AND pg_catalog.pg_type_is_visible(pg_catalog.pg_type.oid) AND pg_catalog.pg_namespace.nspname != $4::VARCHAR ORDER BY pg_catalog.pg_namespace.nspname, pg_catalog.pg_type.typname;

-- [26] catalogue | extended | sent 1x | by: get_table_oid
-- parameters: $1 character varying (Parse says unspecified) = 'people', $2 character varying (Parse says unspecified) = 'r', $3 character varying (Parse says unspecified) = 'p', $4 character varying (Parse says unspecified) = 'f', $5 character varying (Parse says unspecified) = 'v', $6 character varying (Parse says unspecified) = 'm', $7 character varying (Parse says unspecified) = 'pg_catalog'
-- result: oid oid
SELECT pg_catalog.pg_class.oid 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relname = $1::VARCHAR AND pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $7::VARCHAR;

-- [27] catalogue | extended | sent 3x | by: has_type; create_all (new table, enum, index, comment); drop_all
-- parameters: $1 character varying (Parse says unspecified) = 'mood', $2 character varying (Parse says unspecified) = 'pg_catalog'
-- result: typname name
SELECT pg_catalog.pg_type.typname 
FROM pg_catalog.pg_type JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_type.typnamespace 
WHERE pg_catalog.pg_type.typname = $1::VARCHAR AND pg_catalog.pg_type_is_visible(pg_catalog.pg_type.oid) AND pg_catalog.pg_namespace.nspname != $2::VARCHAR;

-- [28] catalogue | extended | sent 1x | by: get_multi_columns
-- parameters: $1 character varying (Parse says unspecified) = '', $2 character varying (Parse says unspecified) = 'always', $3 character varying (Parse says unspecified) = 'a', $4 character varying (Parse says unspecified) = 'start', $5 character varying (Parse says unspecified) = 'increment', $6 character varying (Parse says unspecified) = 'minvalue', $7 character varying (Parse says unspecified) = 'maxvalue', $8 character varying (Parse says unspecified) = 'cache', $9 character varying (Parse says unspecified) = 'cycle', $10 character varying (Parse says unspecified) = '', $11 integer (Parse says unspecified) = '0', $12 character varying (Parse says unspecified) = 'name', $13 character varying (Parse says unspecified) = 'schema', $14 smallint (Parse says unspecified) = '0', $15 character varying (Parse says unspecified) = 'r', $16 character varying (Parse says unspecified) = 'p', $17 character varying (Parse says unspecified) = 'f', $18 character varying (Parse says unspecified) = 't', $19 character varying (Parse says unspecified) = 'pg_catalog'
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
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$15::VARCHAR, $16::VARCHAR, $17::VARCHAR]) AND pg_catalog.pg_class.relpersistence != $18::VARCHAR AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $19::VARCHAR ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_attribute.attnum;

-- [29] catalogue | extended | sent 1x | by: get_multi_indexes(schema)
-- parameters: $1 character varying (Parse says unspecified) = 'r', $2 character varying (Parse says unspecified) = 'p', $3 character varying (Parse says unspecified) = 'f', $4 character varying (Parse says unspecified) = 't', $5 character varying (Parse says unspecified) = 'public'
-- result: oid oid, relname name
SELECT pg_catalog.pg_class.oid, pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR, $2::VARCHAR, $3::VARCHAR]) AND pg_catalog.pg_class.relpersistence != $4::VARCHAR AND pg_catalog.pg_namespace.nspname = $5::VARCHAR;

-- [30] catalogue | extended | sent 2x | by: get_multi_indexes(schema); MetaData.reflect
-- parameters: $1 integer (Parse says unspecified) = '0', $2 integer (Parse says unspecified) = '1', $3 boolean (Parse says unspecified) = 'true', $4 integer (Parse says unspecified) = '0', $5 integer (Parse says unspecified) = '1', $6 oid (Parse says unspecified) = '<oid:people>', $7 oid (Parse says unspecified) = '<oid:orders>', $8 oid (Parse says unspecified) = '<oid:people>', $9 oid (Parse says unspecified) = '<oid:orders>', $10 character varying (Parse says unspecified) = 'p', $11 character varying (Parse says unspecified) = 'u', $12 character varying (Parse says unspecified) = 'x', $13 oid (Parse says unspecified) = '<oid:people>', $14 oid (Parse says unspecified) = '<oid:orders>'
-- result: indrelid oid, relname name, indisunique boolean, indisvalid boolean, has_constraint boolean, indoption int2vector, reloptions text[], relam oid, filter_definition text, indnkeyatts smallint, indnullsnotdistinct boolean, elements text[], elements_is_expr boolean[], elements_opclass bigint[]
SELECT pg_catalog.pg_index.indrelid, pg_catalog.pg_class.relname, pg_catalog.pg_index.indisunique, pg_catalog.pg_index.indisvalid, pg_catalog.pg_constraint.conrelid IS NOT NULL AS has_constraint, pg_catalog.pg_index.indoption, pg_catalog.pg_class.reloptions, pg_catalog.pg_class.relam, CASE WHEN (pg_catalog.pg_index.indpred IS NOT NULL) THEN pg_catalog.pg_get_expr(pg_catalog.pg_index.indpred, pg_catalog.pg_index.indrelid) END AS filter_definition, pg_catalog.pg_index.indnkeyatts, pg_catalog.pg_index.indnullsnotdistinct, idx_cols.elements, idx_cols.elements_is_expr, idx_cols.elements_opclass 
FROM pg_catalog.pg_index JOIN pg_catalog.pg_class ON pg_catalog.pg_index.indexrelid = pg_catalog.pg_class.oid LEFT OUTER JOIN (SELECT idx_attr.indexrelid AS indexrelid, min(idx_attr.indrelid) AS min_1, array_agg(idx_attr.element ORDER BY idx_attr.ord) AS elements, array_agg(idx_attr.is_expr ORDER BY idx_attr.ord) AS elements_is_expr, array_agg(idx_attr.att_opclass ORDER BY idx_attr.ord) AS elements_opclass 
FROM (SELECT idx.indexrelid AS indexrelid, idx.indrelid AS indrelid, idx.ord AS ord, CASE WHEN (idx.attnum = $1::INTEGER) THEN pg_catalog.pg_get_indexdef(idx.indexrelid, idx.ord + $2::INTEGER, $3::BOOLEAN) ELSE CAST(pg_catalog.pg_attribute.attname AS TEXT) END AS element, idx.attnum = $4::INTEGER AS is_expr, CAST(idx.att_opclass AS BIGINT) AS att_opclass 
FROM (SELECT pg_catalog.pg_index.indexrelid AS indexrelid, pg_catalog.pg_index.indrelid AS indrelid, unnest(pg_catalog.pg_index.indkey) AS attnum, unnest(pg_catalog.pg_index.indclass) AS att_opclass, generate_subscripts(pg_catalog.pg_index.indkey, $5::INTEGER) AS ord 
FROM pg_catalog.pg_index 
WHERE NOT pg_catalog.pg_index.indisprimary AND pg_catalog.pg_index.indrelid IN ($6, $7)) AS idx LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_attribute.attnum = idx.attnum AND pg_catalog.pg_attribute.attrelid = idx.indrelid 
WHERE idx.indrelid IN ($8, $9)) AS idx_attr GROUP BY idx_attr.indexrelid) AS idx_cols ON pg_catalog.pg_index.indexrelid = idx_cols.indexrelid LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_index.indrelid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_index.indexrelid = pg_catalog.pg_constraint.conindid AND pg_catalog.pg_constraint.contype = ANY (ARRAY[$10::VARCHAR, $11::VARCHAR, $12::VARCHAR]) 
WHERE pg_catalog.pg_index.indrelid IN ($13, $14) AND NOT pg_catalog.pg_index.indisprimary ORDER BY pg_catalog.pg_index.indrelid, pg_catalog.pg_class.relname;

-- [31] catalogue | extended | sent 1x | by: get_multi_columns(kind=ANY,scope=ANY)
-- parameters: $1 character varying (Parse says unspecified) = '', $2 character varying (Parse says unspecified) = 'always', $3 character varying (Parse says unspecified) = 'a', $4 character varying (Parse says unspecified) = 'start', $5 character varying (Parse says unspecified) = 'increment', $6 character varying (Parse says unspecified) = 'minvalue', $7 character varying (Parse says unspecified) = 'maxvalue', $8 character varying (Parse says unspecified) = 'cache', $9 character varying (Parse says unspecified) = 'cycle', $10 character varying (Parse says unspecified) = '', $11 integer (Parse says unspecified) = '0', $12 character varying (Parse says unspecified) = 'name', $13 character varying (Parse says unspecified) = 'schema', $14 smallint (Parse says unspecified) = '0', $15 character varying (Parse says unspecified) = 'r', $16 character varying (Parse says unspecified) = 'p', $17 character varying (Parse says unspecified) = 'f', $18 character varying (Parse says unspecified) = 'v', $19 character varying (Parse says unspecified) = 'm', $20 character varying (Parse says unspecified) = 'pg_catalog'
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
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$15::VARCHAR, $16::VARCHAR, $17::VARCHAR, $18::VARCHAR, $19::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $20::VARCHAR ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_attribute.attnum;

-- [32] catalogue | extended | sent 1x | by: MetaData.reflect
-- parameters: $1 character varying (Parse says unspecified) = '', $2 character varying (Parse says unspecified) = 'always', $3 character varying (Parse says unspecified) = 'a', $4 character varying (Parse says unspecified) = 'start', $5 character varying (Parse says unspecified) = 'increment', $6 character varying (Parse says unspecified) = 'minvalue', $7 character varying (Parse says unspecified) = 'maxvalue', $8 character varying (Parse says unspecified) = 'cache', $9 character varying (Parse says unspecified) = 'cycle', $10 character varying (Parse says unspecified) = '', $11 integer (Parse says unspecified) = '0', $12 character varying (Parse says unspecified) = 'name', $13 character varying (Parse says unspecified) = 'schema', $14 smallint (Parse says unspecified) = '0', $15 character varying (Parse says unspecified) = 'r', $16 character varying (Parse says unspecified) = 'p', $17 character varying (Parse says unspecified) = 'f', $18 character varying (Parse says unspecified) = 'pg_catalog', $19 character varying (Parse says unspecified) = 'people', $20 character varying (Parse says unspecified) = 'orders'
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
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$15::VARCHAR, $16::VARCHAR, $17::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $18::VARCHAR AND pg_catalog.pg_class.relname IN ($19::VARCHAR, $20::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_attribute.attnum;

-- [33] catalogue | extended | sent 1x | by: MetaData.reflect
-- parameters: $1 character varying (Parse says unspecified) = 'r', $2 character varying (Parse says unspecified) = 'p', $3 character varying (Parse says unspecified) = 'f', $4 character varying (Parse says unspecified) = 'pg_catalog', $5 character varying (Parse says unspecified) = 'people', $6 character varying (Parse says unspecified) = 'orders'
-- result: oid oid, relname name
SELECT pg_catalog.pg_class.oid, pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR, $2::VARCHAR, $3::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $4::VARCHAR AND pg_catalog.pg_class.relname IN ($5::VARCHAR, $6::VARCHAR);

-- [34] catalogue | extended | sent 2x | by: MetaData.reflect
-- parameters: $1 integer (Parse says unspecified) = '1', $2 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $3 character varying (Parse says unspecified) = 'p', $4 oid (Parse says unspecified) = '<oid:people>', $5 oid (Parse says unspecified) = '<oid:orders>', $6 oid (Parse says unspecified) = '<oid:people>', $7 oid (Parse says unspecified) = '<oid:orders>'
-- result: conrelid oid, cols text[], conname name, description text, indnkeyatts smallint, indnullsnotdistinct boolean
SELECT attr.conrelid, array_agg(CAST(attr.attname AS TEXT) ORDER BY attr.ord) AS cols, attr.conname, min(attr.description) AS description, min(attr.indnkeyatts) AS indnkeyatts, bool_and(attr.indnullsnotdistinct) AS indnullsnotdistinct 
FROM (SELECT con.conrelid AS conrelid, con.conname AS conname, con.description AS description, con.ord AS ord, con.indnkeyatts AS indnkeyatts, con.indnullsnotdistinct AS indnullsnotdistinct, pg_catalog.pg_attribute.attname AS attname 
FROM pg_catalog.pg_attribute JOIN (SELECT pg_catalog.pg_constraint.conrelid AS conrelid, pg_catalog.pg_constraint.conname AS conname, unnest(pg_catalog.pg_index.indkey) AS attnum, generate_subscripts(pg_catalog.pg_index.indkey, $1::INTEGER) AS ord, pg_catalog.pg_index.indnkeyatts AS indnkeyatts, pg_catalog.pg_index.indnullsnotdistinct AS indnullsnotdistinct, pg_catalog.pg_description.description AS description 
FROM pg_catalog.pg_constraint JOIN pg_catalog.pg_index ON pg_catalog.pg_constraint.conindid = pg_catalog.pg_index.indexrelid LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($2 AS REGCLASS) 
WHERE pg_catalog.pg_constraint.contype = $3::VARCHAR AND pg_catalog.pg_constraint.conrelid IN ($4, $5)) AS con ON pg_catalog.pg_attribute.attnum = con.attnum AND pg_catalog.pg_attribute.attrelid = con.conrelid 
WHERE con.conrelid IN ($6, $7)) AS attr GROUP BY attr.conrelid, attr.conname ORDER BY attr.conrelid, attr.conname;

-- [35] catalogue | extended | sent 1x | by: MetaData.reflect
-- parameters: $1 boolean (Parse says unspecified) = 'true', $2 character varying (Parse says unspecified) = 'f', $3 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $4 character varying (Parse says unspecified) = 'r', $5 character varying (Parse says unspecified) = 'p', $6 character varying (Parse says unspecified) = 'f', $7 character varying (Parse says unspecified) = 'pg_catalog', $8 character varying (Parse says unspecified) = 'people', $9 character varying (Parse says unspecified) = 'orders'
-- result: relname name, conname name, anon_1 text, nspname name, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname, CASE WHEN (pg_catalog.pg_constraint.oid IS NOT NULL) THEN pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, $1::BOOLEAN) END AS anon_1, nsp_ref.nspname, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_class.oid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_constraint.contype = $2::VARCHAR LEFT OUTER JOIN pg_catalog.pg_class AS cls_ref ON cls_ref.oid = pg_catalog.pg_constraint.confrelid LEFT OUTER JOIN pg_catalog.pg_namespace AS nsp_ref ON cls_ref.relnamespace = nsp_ref.oid LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($3 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$4::VARCHAR, $5::VARCHAR, $6::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $7::VARCHAR AND pg_catalog.pg_class.relname IN ($8::VARCHAR, $9::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname;

-- [36] catalogue | extended | sent 1x | by: MetaData.reflect
-- parameters: $1 integer (Parse says unspecified) = '0', $2 regclass (Parse says unspecified) = 'pg_catalog.pg_class', $3 character varying (Parse says unspecified) = 'r', $4 character varying (Parse says unspecified) = 'p', $5 character varying (Parse says unspecified) = 'f', $6 character varying (Parse says unspecified) = 'pg_catalog', $7 character varying (Parse says unspecified) = 'people', $8 character varying (Parse says unspecified) = 'orders'
-- result: relname name, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_class.oid = pg_catalog.pg_description.objoid AND pg_catalog.pg_description.objsubid = $1::INTEGER AND pg_catalog.pg_description.classoid = CAST($2 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$3::VARCHAR, $4::VARCHAR, $5::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $6::VARCHAR AND pg_catalog.pg_class.relname IN ($7::VARCHAR, $8::VARCHAR);

-- [37] catalogue | extended | sent 1x | by: MetaData.reflect
-- parameters: $1 boolean (Parse says unspecified) = 'true', $2 character varying (Parse says unspecified) = 'c', $3 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $4 character varying (Parse says unspecified) = 'r', $5 character varying (Parse says unspecified) = 'p', $6 character varying (Parse says unspecified) = 'f', $7 character varying (Parse says unspecified) = 'pg_catalog', $8 character varying (Parse says unspecified) = 'people', $9 character varying (Parse says unspecified) = 'orders'
-- result: relname name, conname name, anon_1 text, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname, CASE WHEN (pg_catalog.pg_constraint.oid IS NOT NULL) THEN pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, $1::BOOLEAN) END AS anon_1, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_class.oid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_constraint.contype = $2::VARCHAR LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($3 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$4::VARCHAR, $5::VARCHAR, $6::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $7::VARCHAR AND pg_catalog.pg_class.relname IN ($8::VARCHAR, $9::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname;

-- [38] catalogue | extended | sent 1x | by: MetaData.reflect
-- parameters: $1 character varying (Parse says unspecified) = 'default_table_access_method', $2 character varying (Parse says unspecified) = 'r', $3 character varying (Parse says unspecified) = 'p', $4 character varying (Parse says unspecified) = 'f', $5 character varying (Parse says unspecified) = 'pg_catalog', $6 character varying (Parse says unspecified) = 'people', $7 character varying (Parse says unspecified) = 'orders'
-- result: oid oid, relname name, reloptions text[], relhasoids text, access_method_name name, tablespace_name name, parent_table_names name[]
SELECT pg_catalog.pg_class.oid, pg_catalog.pg_class.relname, pg_catalog.pg_class.reloptions, NULL AS relhasoids, CASE WHEN (pg_catalog.pg_am.amname IS NOT NULL AND pg_catalog.pg_am.amname != current_setting($1::VARCHAR)) THEN pg_catalog.pg_am.amname ELSE NULL END AS access_method_name, pg_catalog.pg_tablespace.spcname AS tablespace_name, inherits.parent_table_names 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_am ON pg_catalog.pg_class.relam = pg_catalog.pg_am.oid LEFT OUTER JOIN (SELECT pg_catalog.pg_inherits.inhrelid AS inhrelid, array_agg(pg_catalog.pg_class.relname ORDER BY pg_catalog.pg_inherits.inhseqno) AS parent_table_names 
FROM pg_catalog.pg_inherits JOIN pg_catalog.pg_class ON pg_catalog.pg_inherits.inhparent = pg_catalog.pg_class.oid GROUP BY pg_catalog.pg_inherits.inhrelid) AS inherits ON pg_catalog.pg_class.oid = inherits.inhrelid LEFT OUTER JOIN pg_catalog.pg_tablespace ON pg_catalog.pg_tablespace.oid = pg_catalog.pg_class.reltablespace JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR, $4::VARCHAR]) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $5::VARCHAR AND pg_catalog.pg_class.relname IN ($6::VARCHAR, $7::VARCHAR);

-- [39] catalogue | extended | sent 2x | by: MetaData.reflect(views, schema)
-- parameters: $1 character varying (Parse says unspecified) = 'v', $2 character varying (Parse says unspecified) = 't', $3 character varying (Parse says unspecified) = 'public'
-- result: relname name
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR]) AND pg_catalog.pg_class.relpersistence != $2::VARCHAR AND pg_catalog.pg_namespace.nspname = $3::VARCHAR;

-- [40] catalogue | extended | sent 1x | by: MetaData.reflect(views, schema)
-- parameters: $1 character varying (Parse says unspecified) = '', $2 character varying (Parse says unspecified) = 'always', $3 character varying (Parse says unspecified) = 'a', $4 character varying (Parse says unspecified) = 'start', $5 character varying (Parse says unspecified) = 'increment', $6 character varying (Parse says unspecified) = 'minvalue', $7 character varying (Parse says unspecified) = 'maxvalue', $8 character varying (Parse says unspecified) = 'cache', $9 character varying (Parse says unspecified) = 'cycle', $10 character varying (Parse says unspecified) = '', $11 integer (Parse says unspecified) = '0', $12 character varying (Parse says unspecified) = 'name', $13 character varying (Parse says unspecified) = 'schema', $14 smallint (Parse says unspecified) = '0', $15 character varying (Parse says unspecified) = 'r', $16 character varying (Parse says unspecified) = 'p', $17 character varying (Parse says unspecified) = 'f', $18 character varying (Parse says unspecified) = 'v', $19 character varying (Parse says unspecified) = 'm', $20 character varying (Parse says unspecified) = 'public', $21 character varying (Parse says unspecified) = 'people', $22 character varying (Parse says unspecified) = 'orders', $23 character varying (Parse says unspecified) = 'adults'
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
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$15::VARCHAR, $16::VARCHAR, $17::VARCHAR, $18::VARCHAR, $19::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $20::VARCHAR AND pg_catalog.pg_class.relname IN ($21::VARCHAR, $22::VARCHAR, $23::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_attribute.attnum;

-- [41] catalogue | extended | sent 1x | by: MetaData.reflect(views, schema)
-- parameters: $1 character varying (Parse says unspecified) = 'r', $2 character varying (Parse says unspecified) = 'p', $3 character varying (Parse says unspecified) = 'f', $4 character varying (Parse says unspecified) = 'v', $5 character varying (Parse says unspecified) = 'm', $6 character varying (Parse says unspecified) = 'public', $7 character varying (Parse says unspecified) = 'people', $8 character varying (Parse says unspecified) = 'orders', $9 character varying (Parse says unspecified) = 'adults'
-- result: oid oid, relname name
SELECT pg_catalog.pg_class.oid, pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $6::VARCHAR AND pg_catalog.pg_class.relname IN ($7::VARCHAR, $8::VARCHAR, $9::VARCHAR);

-- [42] catalogue | extended | sent 2x | by: MetaData.reflect(views, schema)
-- parameters: $1 integer (Parse says unspecified) = '1', $2 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $3 character varying (Parse says unspecified) = 'p', $4 oid (Parse says unspecified) = '<oid:adults>', $5 oid (Parse says unspecified) = '<oid:orders>', $6 oid (Parse says unspecified) = '<oid:people>', $7 oid (Parse says unspecified) = '<oid:adults>', $8 oid (Parse says unspecified) = '<oid:orders>', $9 oid (Parse says unspecified) = '<oid:people>'
-- result: conrelid oid, cols text[], conname name, description text, indnkeyatts smallint, indnullsnotdistinct boolean
SELECT attr.conrelid, array_agg(CAST(attr.attname AS TEXT) ORDER BY attr.ord) AS cols, attr.conname, min(attr.description) AS description, min(attr.indnkeyatts) AS indnkeyatts, bool_and(attr.indnullsnotdistinct) AS indnullsnotdistinct 
FROM (SELECT con.conrelid AS conrelid, con.conname AS conname, con.description AS description, con.ord AS ord, con.indnkeyatts AS indnkeyatts, con.indnullsnotdistinct AS indnullsnotdistinct, pg_catalog.pg_attribute.attname AS attname 
FROM pg_catalog.pg_attribute JOIN (SELECT pg_catalog.pg_constraint.conrelid AS conrelid, pg_catalog.pg_constraint.conname AS conname, unnest(pg_catalog.pg_index.indkey) AS attnum, generate_subscripts(pg_catalog.pg_index.indkey, $1::INTEGER) AS ord, pg_catalog.pg_index.indnkeyatts AS indnkeyatts, pg_catalog.pg_index.indnullsnotdistinct AS indnullsnotdistinct, pg_catalog.pg_description.description AS description 
FROM pg_catalog.pg_constraint JOIN pg_catalog.pg_index ON pg_catalog.pg_constraint.conindid = pg_catalog.pg_index.indexrelid LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($2 AS REGCLASS) 
WHERE pg_catalog.pg_constraint.contype = $3::VARCHAR AND pg_catalog.pg_constraint.conrelid IN ($4, $5, $6)) AS con ON pg_catalog.pg_attribute.attnum = con.attnum AND pg_catalog.pg_attribute.attrelid = con.conrelid 
WHERE con.conrelid IN ($7, $8, $9)) AS attr GROUP BY attr.conrelid, attr.conname ORDER BY attr.conrelid, attr.conname;

-- [43] catalogue | extended | sent 1x | by: MetaData.reflect(views, schema)
-- parameters: $1 boolean (Parse says unspecified) = 'true', $2 character varying (Parse says unspecified) = 'f', $3 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $4 character varying (Parse says unspecified) = 'r', $5 character varying (Parse says unspecified) = 'p', $6 character varying (Parse says unspecified) = 'f', $7 character varying (Parse says unspecified) = 'v', $8 character varying (Parse says unspecified) = 'm', $9 character varying (Parse says unspecified) = 'public', $10 character varying (Parse says unspecified) = 'people', $11 character varying (Parse says unspecified) = 'orders', $12 character varying (Parse says unspecified) = 'adults'
-- result: relname name, conname name, anon_1 text, nspname name, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname, CASE WHEN (pg_catalog.pg_constraint.oid IS NOT NULL) THEN pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, $1::BOOLEAN) END AS anon_1, nsp_ref.nspname, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_class.oid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_constraint.contype = $2::VARCHAR LEFT OUTER JOIN pg_catalog.pg_class AS cls_ref ON cls_ref.oid = pg_catalog.pg_constraint.confrelid LEFT OUTER JOIN pg_catalog.pg_namespace AS nsp_ref ON cls_ref.relnamespace = nsp_ref.oid LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($3 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $9::VARCHAR AND pg_catalog.pg_class.relname IN ($10::VARCHAR, $11::VARCHAR, $12::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname;

-- [44] catalogue | extended | sent 1x | by: MetaData.reflect(views, schema)
-- parameters: $1 integer (Parse says unspecified) = '0', $2 integer (Parse says unspecified) = '1', $3 boolean (Parse says unspecified) = 'true', $4 integer (Parse says unspecified) = '0', $5 integer (Parse says unspecified) = '1', $6 oid (Parse says unspecified) = '<oid:adults>', $7 oid (Parse says unspecified) = '<oid:orders>', $8 oid (Parse says unspecified) = '<oid:people>', $9 oid (Parse says unspecified) = '<oid:adults>', $10 oid (Parse says unspecified) = '<oid:orders>', $11 oid (Parse says unspecified) = '<oid:people>', $12 character varying (Parse says unspecified) = 'p', $13 character varying (Parse says unspecified) = 'u', $14 character varying (Parse says unspecified) = 'x', $15 oid (Parse says unspecified) = '<oid:adults>', $16 oid (Parse says unspecified) = '<oid:orders>', $17 oid (Parse says unspecified) = '<oid:people>'
-- result: indrelid oid, relname name, indisunique boolean, indisvalid boolean, has_constraint boolean, indoption int2vector, reloptions text[], relam oid, filter_definition text, indnkeyatts smallint, indnullsnotdistinct boolean, elements text[], elements_is_expr boolean[], elements_opclass bigint[]
SELECT pg_catalog.pg_index.indrelid, pg_catalog.pg_class.relname, pg_catalog.pg_index.indisunique, pg_catalog.pg_index.indisvalid, pg_catalog.pg_constraint.conrelid IS NOT NULL AS has_constraint, pg_catalog.pg_index.indoption, pg_catalog.pg_class.reloptions, pg_catalog.pg_class.relam, CASE WHEN (pg_catalog.pg_index.indpred IS NOT NULL) THEN pg_catalog.pg_get_expr(pg_catalog.pg_index.indpred, pg_catalog.pg_index.indrelid) END AS filter_definition, pg_catalog.pg_index.indnkeyatts, pg_catalog.pg_index.indnullsnotdistinct, idx_cols.elements, idx_cols.elements_is_expr, idx_cols.elements_opclass 
FROM pg_catalog.pg_index JOIN pg_catalog.pg_class ON pg_catalog.pg_index.indexrelid = pg_catalog.pg_class.oid LEFT OUTER JOIN (SELECT idx_attr.indexrelid AS indexrelid, min(idx_attr.indrelid) AS min_1, array_agg(idx_attr.element ORDER BY idx_attr.ord) AS elements, array_agg(idx_attr.is_expr ORDER BY idx_attr.ord) AS elements_is_expr, array_agg(idx_attr.att_opclass ORDER BY idx_attr.ord) AS elements_opclass 
FROM (SELECT idx.indexrelid AS indexrelid, idx.indrelid AS indrelid, idx.ord AS ord, CASE WHEN (idx.attnum = $1::INTEGER) THEN pg_catalog.pg_get_indexdef(idx.indexrelid, idx.ord + $2::INTEGER, $3::BOOLEAN) ELSE CAST(pg_catalog.pg_attribute.attname AS TEXT) END AS element, idx.attnum = $4::INTEGER AS is_expr, CAST(idx.att_opclass AS BIGINT) AS att_opclass 
FROM (SELECT pg_catalog.pg_index.indexrelid AS indexrelid, pg_catalog.pg_index.indrelid AS indrelid, unnest(pg_catalog.pg_index.indkey) AS attnum, unnest(pg_catalog.pg_index.indclass) AS att_opclass, generate_subscripts(pg_catalog.pg_index.indkey, $5::INTEGER) AS ord 
FROM pg_catalog.pg_index 
WHERE NOT pg_catalog.pg_index.indisprimary AND pg_catalog.pg_index.indrelid IN ($6, $7, $8)) AS idx LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_attribute.attnum = idx.attnum AND pg_catalog.pg_attribute.attrelid = idx.indrelid 
WHERE idx.indrelid IN ($9, $10, $11)) AS idx_attr GROUP BY idx_attr.indexrelid) AS idx_cols ON pg_catalog.pg_index.indexrelid = idx_cols.indexrelid LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_index.indrelid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_index.indexrelid = pg_catalog.pg_constraint.conindid AND pg_catalog.pg_constraint.contype = ANY (ARRAY[$12::VARCHAR, $13::VARCHAR, $14::VARCHAR]) 
WHERE pg_catalog.pg_index.indrelid IN ($15, $16, $17) AND NOT pg_catalog.pg_index.indisprimary ORDER BY pg_catalog.pg_index.indrelid, pg_catalog.pg_class.relname;

-- [45] catalogue | extended | sent 1x | by: MetaData.reflect(views, schema)
-- parameters: $1 integer (Parse says unspecified) = '0', $2 regclass (Parse says unspecified) = 'pg_catalog.pg_class', $3 character varying (Parse says unspecified) = 'r', $4 character varying (Parse says unspecified) = 'p', $5 character varying (Parse says unspecified) = 'f', $6 character varying (Parse says unspecified) = 'v', $7 character varying (Parse says unspecified) = 'm', $8 character varying (Parse says unspecified) = 'public', $9 character varying (Parse says unspecified) = 'people', $10 character varying (Parse says unspecified) = 'orders', $11 character varying (Parse says unspecified) = 'adults'
-- result: relname name, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_class.oid = pg_catalog.pg_description.objoid AND pg_catalog.pg_description.objsubid = $1::INTEGER AND pg_catalog.pg_description.classoid = CAST($2 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $8::VARCHAR AND pg_catalog.pg_class.relname IN ($9::VARCHAR, $10::VARCHAR, $11::VARCHAR);

-- [46] catalogue | extended | sent 1x | by: MetaData.reflect(views, schema)
-- parameters: $1 boolean (Parse says unspecified) = 'true', $2 character varying (Parse says unspecified) = 'c', $3 regclass (Parse says unspecified) = 'pg_catalog.pg_constraint', $4 character varying (Parse says unspecified) = 'r', $5 character varying (Parse says unspecified) = 'p', $6 character varying (Parse says unspecified) = 'f', $7 character varying (Parse says unspecified) = 'v', $8 character varying (Parse says unspecified) = 'm', $9 character varying (Parse says unspecified) = 'public', $10 character varying (Parse says unspecified) = 'people', $11 character varying (Parse says unspecified) = 'orders', $12 character varying (Parse says unspecified) = 'adults'
-- result: relname name, conname name, anon_1 text, description text
SELECT pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname, CASE WHEN (pg_catalog.pg_constraint.oid IS NOT NULL) THEN pg_catalog.pg_get_constraintdef(pg_catalog.pg_constraint.oid, $1::BOOLEAN) END AS anon_1, pg_catalog.pg_description.description 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_class.oid = pg_catalog.pg_constraint.conrelid AND pg_catalog.pg_constraint.contype = $2::VARCHAR LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid AND pg_catalog.pg_description.classoid = CAST($3 AS REGCLASS) JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $9::VARCHAR AND pg_catalog.pg_class.relname IN ($10::VARCHAR, $11::VARCHAR, $12::VARCHAR) ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_constraint.conname;

-- [47] catalogue | extended | sent 1x | by: MetaData.reflect(views, schema)
-- parameters: $1 character varying (Parse says unspecified) = 'default_table_access_method', $2 character varying (Parse says unspecified) = 'r', $3 character varying (Parse says unspecified) = 'p', $4 character varying (Parse says unspecified) = 'f', $5 character varying (Parse says unspecified) = 'v', $6 character varying (Parse says unspecified) = 'm', $7 character varying (Parse says unspecified) = 'public', $8 character varying (Parse says unspecified) = 'people', $9 character varying (Parse says unspecified) = 'orders', $10 character varying (Parse says unspecified) = 'adults'
-- result: oid oid, relname name, reloptions text[], relhasoids text, access_method_name name, tablespace_name name, parent_table_names name[]
SELECT pg_catalog.pg_class.oid, pg_catalog.pg_class.relname, pg_catalog.pg_class.reloptions, NULL AS relhasoids, CASE WHEN (pg_catalog.pg_am.amname IS NOT NULL AND pg_catalog.pg_am.amname != current_setting($1::VARCHAR)) THEN pg_catalog.pg_am.amname ELSE NULL END AS access_method_name, pg_catalog.pg_tablespace.spcname AS tablespace_name, inherits.parent_table_names 
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_am ON pg_catalog.pg_class.relam = pg_catalog.pg_am.oid LEFT OUTER JOIN (SELECT pg_catalog.pg_inherits.inhrelid AS inhrelid, array_agg(pg_catalog.pg_class.relname ORDER BY pg_catalog.pg_inherits.inhseqno) AS parent_table_names 
FROM pg_catalog.pg_inherits JOIN pg_catalog.pg_class ON pg_catalog.pg_inherits.inhparent = pg_catalog.pg_class.oid GROUP BY pg_catalog.pg_inherits.inhrelid) AS inherits ON pg_catalog.pg_class.oid = inherits.inhrelid LEFT OUTER JOIN pg_catalog.pg_tablespace ON pg_catalog.pg_tablespace.oid = pg_catalog.pg_class.reltablespace JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR]) AND pg_catalog.pg_namespace.nspname = $7::VARCHAR AND pg_catalog.pg_class.relname IN ($8::VARCHAR, $9::VARCHAR, $10::VARCHAR);

-- [48] session | simple | sent 29x | by: connect; get_schema_names; Core select; Core select jsonb; Core select in/aggregate; … (22 actions)
-- result: BEGIN
begin transaction;

-- [49] session | simple | sent 1x | by: connect
-- result: version text
select pg_catalog.version();

-- [50] session | simple | sent 1x | by: connect
-- result: current_schema name
select current_schema();

-- [51] session | simple | sent 2x | by: connect; get_isolation_level
-- result: transaction_isolation text
show transaction isolation level;

-- [52] session | simple | sent 1x | by: connect
-- result: standard_conforming_strings text
show standard_conforming_strings;

-- [53] session | extended | sent 7x | by: connect; Table(autoload_with); Core select in/aggregate; isolation SERIALIZABLE, readonly; isolation AUTOCOMMIT; … (7 actions)
-- result: ROLLBACK
rollback;

-- [54] session | simple | sent 20x | by: Core select; Core select jsonb; Core select in/aggregate; Core insert; Core insert many; … (20 actions)
-- result: I
;

-- [55] session | extended | sent 15x | by: Core select; Core select jsonb; Core insert; Core insert many; Core insert returning many; … (15 actions)
-- result: COMMIT
commit;

-- [56] session | simple | sent 1x | by: savepoint
-- result: SAVEPOINT
SAVEPOINT sa_savepoint_1;

-- [57] session | simple | sent 3x | by: savepoint; isolation SERIALIZABLE, readonly; isolation AUTOCOMMIT
-- result: ?column? integer
select 1;

-- [58] session | simple | sent 1x | by: stream
-- result: DECLARE CURSOR
DECLARE <cursor> NO SCROLL CURSOR FOR SELECT orders.id, orders.doc 
FROM orders;

-- [59] session | simple | sent 1x | by: stream
-- result: id text, doc jsonb
FETCH FORWARD 1 FROM <cursor>;

-- [60] session | simple | sent 1x | by: stream
-- result: id text, doc jsonb
FETCH FORWARD 2 FROM <cursor>;

-- [61] session | simple | sent 1x | by: isolation SERIALIZABLE, readonly
-- result: SET
SET SESSION CHARACTERISTICS AS TRANSACTION DEFERRABLE;

-- [62] session | simple | sent 7x | by: isolation SERIALIZABLE, readonly; isolation AUTOCOMMIT
-- result: COMMIT
COMMIT;

-- [63] session | simple | sent 1x | by: isolation SERIALIZABLE, readonly
-- result: SET
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE;

-- [64] session | simple | sent 1x | by: isolation SERIALIZABLE, readonly
-- result: SET
SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY;

-- [65] session | simple | sent 1x | by: isolation SERIALIZABLE, readonly
-- result: SET
SET SESSION CHARACTERISTICS AS TRANSACTION NOT DEFERRABLE;

-- [66] session | simple | sent 2x | by: isolation SERIALIZABLE, readonly; isolation AUTOCOMMIT
-- result: SET
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;

-- [67] session | simple | sent 1x | by: isolation SERIALIZABLE, readonly
-- result: SET
SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE;

-- [68] data | extended | sent 1x | by: Core select
-- parameters: $1 character varying (Parse says unspecified) = 'o1', $2 integer (Parse says unspecified) = '3'
-- result: id text, doc jsonb
SELECT orders.id, orders.doc 
FROM orders 
WHERE orders.id = $1::VARCHAR 
 LIMIT $2::INTEGER;

-- [69] data | extended | sent 1x | by: Core select jsonb
-- parameters: $1 text (Parse says unspecified) = 'person', $2 character varying (Parse says unspecified) = 'p1', $3 integer (Parse says unspecified) = '3', $4 integer (Parse says unspecified) = '1'
-- result: id text
SELECT orders.id 
FROM orders 
WHERE (orders.doc ->> $1::TEXT) = $2::VARCHAR ORDER BY orders.id DESC 
 LIMIT $3::INTEGER OFFSET $4::INTEGER;

-- [70] data | extended | sent 1x | by: Core select in/aggregate
-- wire: only Parse/Describe
-- result: none seen
-- error on PostgreSQL: 42803 column "orders.doc" must appear in the GROUP BY clause or be used in an aggregate function
SELECT orders.doc ->> $1::TEXT AS anon_1, count(*) AS count_1 
FROM orders 
WHERE orders.id IN ($2::VARCHAR, $3::VARCHAR) GROUP BY orders.doc ->> $4::TEXT;

-- [71] data | extended | sent 6x | by: Core insert; Core insert many; ORM add/flush
-- parameters: $1 character varying (Parse says unspecified) = 's1', $2 jsonb (Parse says unspecified) = '{"a": 1}'
-- result: INSERT n n
INSERT INTO orders (id, doc) VALUES ($1::VARCHAR, $2::JSONB);

-- [72] data | extended | sent 1x | by: Core insert returning many
-- parameters: $1 character varying (Parse says unspecified) = 's4', $2 jsonb (Parse says unspecified) = '{}', $3 character varying (Parse says unspecified) = 's5', $4 jsonb (Parse says unspecified) = '{}'
-- result: id text
INSERT INTO orders (id, doc) VALUES ($1::VARCHAR, $2::JSONB), ($3::VARCHAR, $4::JSONB) RETURNING orders.id;

-- [73] data | extended | sent 1x | by: Core insert on conflict
-- parameters: $1 character varying (Parse says unspecified) = 's2', $2 jsonb (Parse says unspecified) = '{}', $3 jsonb (Parse says unspecified) = '{}'
-- result: INSERT n n
INSERT INTO orders (id, doc) VALUES ($1::VARCHAR, $2::JSONB) ON CONFLICT (id) DO UPDATE SET doc = $3::JSONB;

-- [74] data | extended | sent 1x | by: Core update returning
-- parameters: $1 jsonb (Parse says unspecified) = '{}', $2 character varying (Parse says unspecified) = 's1'
-- result: id text
UPDATE orders SET doc=$1::JSONB WHERE orders.id = $2::VARCHAR RETURNING orders.id;

-- [75] data | extended | sent 1x | by: Core delete returning
-- parameters: $1 character varying (Parse says unspecified) = 's%'
-- result: id text
DELETE FROM orders WHERE orders.id LIKE $1::VARCHAR RETURNING orders.id;

-- [76] data | extended | sent 3x | by: ORM update; ORM refresh; ORM query
-- parameters: $1 character varying (Parse says unspecified) = 'r1'
-- result: id text, doc jsonb
SELECT orders.id, orders.doc 
FROM orders 
WHERE orders.id = $1::VARCHAR;

-- [77] data | extended | sent 1x | by: ORM update
-- parameters: $1 jsonb (Parse says unspecified) = '{"k": 9}', $2 character varying (Parse says unspecified) = 'r1'
-- result: UPDATE n
UPDATE orders SET doc=$1::JSONB WHERE orders.id = $2::VARCHAR;

-- [78] data | extended | sent 1x | by: ORM query
-- parameters: $1 character varying (Parse says unspecified) = 'r1'
-- result: count_1 bigint
SELECT count(*) AS count_1 
FROM (SELECT orders.id AS orders_id, orders.doc AS orders_doc 
FROM orders 
WHERE orders.id IN ($1::VARCHAR)) AS anon_1;

-- [79] data | extended | sent 1x | by: ORM delete
-- parameters: $1 character varying (Parse says unspecified) = 'r1'
-- result: DELETE n
DELETE FROM orders WHERE orders.id = $1::VARCHAR;

-- [80] data | extended | sent 1x | by: ORM delete
-- parameters: $1 character varying (Parse says unspecified) = 'r0', $2 character varying (Parse says unspecified) = 'r2'
-- result: DELETE n
DELETE FROM orders WHERE orders.id IN ($1::VARCHAR, $2::VARCHAR);

-- [81] data | simple | sent 1x | by: create_all (new table, enum, index, comment)
-- result: CREATE TYPE
CREATE TYPE tmp_enum AS ENUM ('a', 'b');

-- [82] data | simple | sent 1x | by: create_all (new table, enum, index, comment)
-- result: CREATE TABLE
CREATE TABLE tmp_sa (
	id SERIAL NOT NULL, 
	e tmp_enum, 
	n VARCHAR(10), 
	z NUMERIC(3, 1), 
	PRIMARY KEY (id)
);

-- [83] data | simple | sent 1x | by: create_all (new table, enum, index, comment)
-- result: CREATE INDEX
CREATE INDEX ix_tmp_sa_n ON tmp_sa (n);

-- [84] data | simple | sent 1x | by: create_all (new table, enum, index, comment)
-- result: COMMENT
COMMENT ON COLUMN tmp_sa.n IS 'c';

-- [85] data | simple | sent 1x | by: drop_all
-- result: DROP TABLE
DROP TABLE tmp_sa;

-- [86] data | simple | sent 1x | by: drop_all
-- result: DROP TYPE
DROP TYPE tmp_enum;
