-- jdbc: pgjdbc 42.5.5 of Debian
-- 80 statements: 41 catalogue, 21 session, 18 data

-- [1] catalogue | extended | sent 2x | by: getTables
-- result: table_cat text, table_schem name, table_name name, table_type text, remarks text, type_cat text, type_schem text, type_name text, self_referencing_col_name text, ref_generation text
SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME,  CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema'  WHEN true THEN CASE  WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TABLE'   WHEN 'v' THEN 'SYSTEM VIEW'   WHEN 'i' THEN 'SYSTEM INDEX'   ELSE NULL   END  WHEN n.nspname = 'pg_toast' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TOAST TABLE'   WHEN 'i' THEN 'SYSTEM TOAST INDEX'   ELSE NULL   END  ELSE CASE c.relkind   WHEN 'r' THEN 'TEMPORARY TABLE'   WHEN 'p' THEN 'TEMPORARY TABLE'   WHEN 'i' THEN 'TEMPORARY INDEX'   WHEN 'S' THEN 'TEMPORARY SEQUENCE'   WHEN 'v' THEN 'TEMPORARY VIEW'   ELSE NULL   END  END  WHEN false THEN CASE c.relkind  WHEN 'r' THEN 'TABLE'  WHEN 'p' THEN 'PARTITIONED TABLE'  WHEN 'i' THEN 'INDEX'  WHEN 'P' then 'PARTITIONED INDEX'  WHEN 'S' THEN 'SEQUENCE'  WHEN 'v' THEN 'VIEW'  WHEN 'c' THEN 'TYPE'  WHEN 'f' THEN 'FOREIGN TABLE'  WHEN 'm' THEN 'MATERIALIZED VIEW'  ELSE NULL  END  ELSE NULL  END  AS TABLE_TYPE, d.description AS REMARKS,  '' as TYPE_CAT, '' as TYPE_SCHEM, '' as TYPE_NAME, '' AS SELF_REFERENCING_COL_NAME, '' AS REF_GENERATION  FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c  LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0  and d.classoid = 'pg_class'::regclass)  WHERE c.relnamespace = n.oid  AND c.relname LIKE '%' ORDER BY TABLE_TYPE,TABLE_SCHEM,TABLE_NAME;

-- [2] catalogue | extended | sent 2x | by: getTables(TABLE)
-- result: table_cat text, table_schem name, table_name name, table_type text, remarks text, type_cat text, type_schem text, type_name text, self_referencing_col_name text, ref_generation text
SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME,  CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema'  WHEN true THEN CASE  WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TABLE'   WHEN 'v' THEN 'SYSTEM VIEW'   WHEN 'i' THEN 'SYSTEM INDEX'   ELSE NULL   END  WHEN n.nspname = 'pg_toast' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TOAST TABLE'   WHEN 'i' THEN 'SYSTEM TOAST INDEX'   ELSE NULL   END  ELSE CASE c.relkind   WHEN 'r' THEN 'TEMPORARY TABLE'   WHEN 'p' THEN 'TEMPORARY TABLE'   WHEN 'i' THEN 'TEMPORARY INDEX'   WHEN 'S' THEN 'TEMPORARY SEQUENCE'   WHEN 'v' THEN 'TEMPORARY VIEW'   ELSE NULL   END  END  WHEN false THEN CASE c.relkind  WHEN 'r' THEN 'TABLE'  WHEN 'p' THEN 'PARTITIONED TABLE'  WHEN 'i' THEN 'INDEX'  WHEN 'P' then 'PARTITIONED INDEX'  WHEN 'S' THEN 'SEQUENCE'  WHEN 'v' THEN 'VIEW'  WHEN 'c' THEN 'TYPE'  WHEN 'f' THEN 'FOREIGN TABLE'  WHEN 'm' THEN 'MATERIALIZED VIEW'  ELSE NULL  END  ELSE NULL  END  AS TABLE_TYPE, d.description AS REMARKS,  '' as TYPE_CAT, '' as TYPE_SCHEM, '' as TYPE_NAME, '' AS SELF_REFERENCING_COL_NAME, '' AS REF_GENERATION  FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c  LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0  and d.classoid = 'pg_class'::regclass)  WHERE c.relnamespace = n.oid  AND n.nspname LIKE 'public' AND c.relname LIKE 'people' AND (false  OR ( c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ) )  ORDER BY TABLE_TYPE,TABLE_SCHEM,TABLE_NAME;

-- [3] catalogue | extended | sent 2x | by: getTables(TABLE,VIEW,…)
-- result: table_cat text, table_schem name, table_name name, table_type text, remarks text, type_cat text, type_schem text, type_name text, self_referencing_col_name text, ref_generation text
SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME,  CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema'  WHEN true THEN CASE  WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TABLE'   WHEN 'v' THEN 'SYSTEM VIEW'   WHEN 'i' THEN 'SYSTEM INDEX'   ELSE NULL   END  WHEN n.nspname = 'pg_toast' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TOAST TABLE'   WHEN 'i' THEN 'SYSTEM TOAST INDEX'   ELSE NULL   END  ELSE CASE c.relkind   WHEN 'r' THEN 'TEMPORARY TABLE'   WHEN 'p' THEN 'TEMPORARY TABLE'   WHEN 'i' THEN 'TEMPORARY INDEX'   WHEN 'S' THEN 'TEMPORARY SEQUENCE'   WHEN 'v' THEN 'TEMPORARY VIEW'   ELSE NULL   END  END  WHEN false THEN CASE c.relkind  WHEN 'r' THEN 'TABLE'  WHEN 'p' THEN 'PARTITIONED TABLE'  WHEN 'i' THEN 'INDEX'  WHEN 'P' then 'PARTITIONED INDEX'  WHEN 'S' THEN 'SEQUENCE'  WHEN 'v' THEN 'VIEW'  WHEN 'c' THEN 'TYPE'  WHEN 'f' THEN 'FOREIGN TABLE'  WHEN 'm' THEN 'MATERIALIZED VIEW'  ELSE NULL  END  ELSE NULL  END  AS TABLE_TYPE, d.description AS REMARKS,  '' as TYPE_CAT, '' as TYPE_SCHEM, '' as TYPE_NAME, '' AS SELF_REFERENCING_COL_NAME, '' AS REF_GENERATION  FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c  LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0  and d.classoid = 'pg_class'::regclass)  WHERE c.relnamespace = n.oid  AND n.nspname LIKE 'public' AND c.relname LIKE '%' AND (false  OR ( c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' )  OR ( c.relkind = 'v' AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' )  OR ( c.relkind = 'm' )  OR ( c.relkind = 'p' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' )  OR ( c.relkind = 'f' )  OR ( c.relkind = 'r' AND (n.nspname = 'pg_catalog' OR n.nspname = 'information_schema') )  OR ( c.relkind = 'v' AND (n.nspname = 'pg_catalog' OR n.nspname = 'information_schema')  )  OR ( c.relkind IN ('r','p') AND n.nspname ~ '^pg_temp_'  )  OR ( c.relkind = 'S' )  OR ( c.relkind = 'i' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' )  OR ( c.relkind = 'c' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ) )  ORDER BY TABLE_TYPE,TABLE_SCHEM,TABLE_NAME;

-- [4] catalogue | extended | sent 2x | by: getColumns
-- result: nspname name, relname name, attname name, atttypid oid, attnotnull boolean, atttypmod integer, attlen smallint, typtypmod integer, attnum bigint, attidentity "char", attgenerated "char", adsrc text, description text, typbasetype oid, typtype "char"
SELECT * FROM (SELECT n.nspname,c.relname,a.attname,a.atttypid,a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull,a.atttypmod,a.attlen,t.typtypmod,row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum, nullif(a.attidentity, '') as attidentity,nullif(a.attgenerated, '') as attgenerated,pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype  FROM pg_catalog.pg_namespace n  JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid)  JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid)  JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)  LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum)  LEFT JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)  LEFT JOIN pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class')  LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog')  WHERE c.relkind in ('r','p','v','f','m') and a.attnum > 0 AND NOT a.attisdropped  AND c.relname LIKE 'people') c WHERE true  ORDER BY nspname,c.relname,attnum;

-- [5] catalogue | extended | sent 34x | by: getColumns; getColumns pg_catalog; connect prepareThreshold=1&binaryTransfer=true; connect targetServerType=primary; connect targetServerType=preferSecondary; … (11 actions)
-- parameters: $1 oid (Parse says bigint) = 3802
-- wire: binary parameters, named statement
-- result: is_array boolean, typtype "char", typname name, oid oid
SELECT typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid   FROM pg_catalog.pg_type   LEFT JOIN (select ns.oid as nspoid, ns.nspname, r.r           from pg_namespace as ns           join ( select s.r, (current_schemas(false))[s.r] as nspname                    from generate_series(1, array_upper(current_schemas(false), 1)) as s(r) ) as r          using ( nspname )        ) as sp     ON sp.nspoid = typnamespace  WHERE pg_type.oid = $1  ORDER BY sp.r, pg_type.oid DESC;

-- [6] catalogue | extended | sent 44x | by: getColumns; getColumns pg_catalog; getFunctionColumns; getObject of unknown type; connect prepareThreshold=1&binaryTransfer=true; … (13 actions)
-- parameters: $1 oid (Parse says integer) = 3802
-- wire: binary parameters, named statement
-- result: ?column? boolean, nspname name, typname name
SELECT n.nspname = ANY(current_schemas(true)), n.nspname, t.typname FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid WHERE t.oid = $1;

-- [7] catalogue | extended | sent 2x | by: getColumns(all)
-- result: nspname name, relname name, attname name, atttypid oid, attnotnull boolean, atttypmod integer, attlen smallint, typtypmod integer, attnum bigint, attidentity "char", attgenerated "char", adsrc text, description text, typbasetype oid, typtype "char"
SELECT * FROM (SELECT n.nspname,c.relname,a.attname,a.atttypid,a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull,a.atttypmod,a.attlen,t.typtypmod,row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum, nullif(a.attidentity, '') as attidentity,nullif(a.attgenerated, '') as attgenerated,pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype  FROM pg_catalog.pg_namespace n  JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid)  JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid)  JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)  LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum)  LEFT JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)  LEFT JOIN pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class')  LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog')  WHERE c.relkind in ('r','p','v','f','m') and a.attnum > 0 AND NOT a.attisdropped  AND n.nspname LIKE 'public' AND c.relname LIKE '%') c WHERE true  AND attname LIKE '%' ORDER BY nspname,c.relname,attnum;

-- [8] catalogue | extended | sent 2x | by: getColumns pg_catalog
-- result: nspname name, relname name, attname name, atttypid oid, attnotnull boolean, atttypmod integer, attlen smallint, typtypmod integer, attnum bigint, attidentity "char", attgenerated "char", adsrc text, description text, typbasetype oid, typtype "char"
SELECT * FROM (SELECT n.nspname,c.relname,a.attname,a.atttypid,a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull,a.atttypmod,a.attlen,t.typtypmod,row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum, nullif(a.attidentity, '') as attidentity,nullif(a.attgenerated, '') as attgenerated,pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype  FROM pg_catalog.pg_namespace n  JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid)  JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid)  JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)  LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum)  LEFT JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)  LEFT JOIN pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class')  LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog')  WHERE c.relkind in ('r','p','v','f','m') and a.attnum > 0 AND NOT a.attisdropped  AND n.nspname LIKE 'pg_catalog' AND c.relname LIKE 'pg_class') c WHERE true  ORDER BY nspname,c.relname,attnum;

-- [9] catalogue | extended | sent 2x | by: getIndexInfo
-- result: table_cat text, table_schem name, table_name name, non_unique boolean, index_qualifier text, index_name name, type integer, ordinal_position integer, column_name text, asc_or_desc text, cardinality real, pages integer, filter_condition text
SELECT     tmp.TABLE_CAT,     tmp.TABLE_SCHEM,     tmp.TABLE_NAME,     tmp.NON_UNIQUE,     tmp.INDEX_QUALIFIER,     tmp.INDEX_NAME,     tmp.TYPE,     tmp.ORDINAL_POSITION,     trim(both '"' from pg_catalog.pg_get_indexdef(tmp.CI_OID, tmp.ORDINAL_POSITION, false)) AS COLUMN_NAME,   CASE tmp.AM_NAME     WHEN 'btree' THEN CASE tmp.I_INDOPTION[tmp.ORDINAL_POSITION - 1] & 1::smallint       WHEN 1 THEN 'D'       ELSE 'A'     END     ELSE NULL   END AS ASC_OR_DESC,     tmp.CARDINALITY,     tmp.PAGES,     tmp.FILTER_CONDITION FROM (SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM,   ct.relname AS TABLE_NAME, NOT i.indisunique AS NON_UNIQUE,   NULL AS INDEX_QUALIFIER, ci.relname AS INDEX_NAME,   CASE i.indisclustered     WHEN true THEN 1    ELSE CASE am.amname       WHEN 'hash' THEN 2      ELSE 3    END   END AS TYPE,   (information_schema._pg_expandarray(i.indkey)).n AS ORDINAL_POSITION,   ci.reltuples AS CARDINALITY,   ci.relpages AS PAGES,   pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS FILTER_CONDITION,   ci.oid AS CI_OID,   i.indoption AS I_INDOPTION,   am.amname AS AM_NAME FROM pg_catalog.pg_class ct   JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)   JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid)   JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)   JOIN pg_catalog.pg_am am ON (ci.relam = am.oid) WHERE true  AND n.nspname = 'public' AND ct.relname = 'people') AS tmp ORDER BY NON_UNIQUE, TYPE, INDEX_NAME, ORDINAL_POSITION;

-- [10] catalogue | extended | sent 2x | by: getIndexInfo unique
-- result: table_cat text, table_schem name, table_name name, non_unique boolean, index_qualifier text, index_name name, type integer, ordinal_position integer, column_name text, asc_or_desc text, cardinality real, pages integer, filter_condition text
SELECT     tmp.TABLE_CAT,     tmp.TABLE_SCHEM,     tmp.TABLE_NAME,     tmp.NON_UNIQUE,     tmp.INDEX_QUALIFIER,     tmp.INDEX_NAME,     tmp.TYPE,     tmp.ORDINAL_POSITION,     trim(both '"' from pg_catalog.pg_get_indexdef(tmp.CI_OID, tmp.ORDINAL_POSITION, false)) AS COLUMN_NAME,   CASE tmp.AM_NAME     WHEN 'btree' THEN CASE tmp.I_INDOPTION[tmp.ORDINAL_POSITION - 1] & 1::smallint       WHEN 1 THEN 'D'       ELSE 'A'     END     ELSE NULL   END AS ASC_OR_DESC,     tmp.CARDINALITY,     tmp.PAGES,     tmp.FILTER_CONDITION FROM (SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM,   ct.relname AS TABLE_NAME, NOT i.indisunique AS NON_UNIQUE,   NULL AS INDEX_QUALIFIER, ci.relname AS INDEX_NAME,   CASE i.indisclustered     WHEN true THEN 1    ELSE CASE am.amname       WHEN 'hash' THEN 2      ELSE 3    END   END AS TYPE,   (information_schema._pg_expandarray(i.indkey)).n AS ORDINAL_POSITION,   ci.reltuples AS CARDINALITY,   ci.relpages AS PAGES,   pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS FILTER_CONDITION,   ci.oid AS CI_OID,   i.indoption AS I_INDOPTION,   am.amname AS AM_NAME FROM pg_catalog.pg_class ct   JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)   JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid)   JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)   JOIN pg_catalog.pg_am am ON (ci.relam = am.oid) WHERE true  AND ct.relname = 'people' AND i.indisunique ) AS tmp ORDER BY NON_UNIQUE, TYPE, INDEX_NAME, ORDINAL_POSITION;

-- [11] catalogue | extended | sent 2x | by: getPrimaryKeys
-- result: table_cat text, table_schem name, table_name name, column_name name, key_seq integer, pk_name name
SELECT        result.TABLE_CAT,        result.TABLE_SCHEM,        result.TABLE_NAME,        result.COLUMN_NAME,        result.KEY_SEQ,        result.PK_NAME FROM      (SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM,   ct.relname AS TABLE_NAME, a.attname AS COLUMN_NAME,   (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME,   information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM FROM pg_catalog.pg_class ct   JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)   JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)   JOIN pg_catalog.pg_index i ON ( a.attrelid = i.indrelid)   JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) WHERE true  AND ct.relname = 'people' AND i.indisprimary  ) result where  result.A_ATTNUM = (result.KEYS).x  ORDER BY result.table_name, result.pk_name, result.key_seq;

-- [12] catalogue | extended | sent 2x | by: getPrimaryKeys(schema)
-- result: table_cat text, table_schem name, table_name name, column_name name, key_seq integer, pk_name name
SELECT        result.TABLE_CAT,        result.TABLE_SCHEM,        result.TABLE_NAME,        result.COLUMN_NAME,        result.KEY_SEQ,        result.PK_NAME FROM      (SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM,   ct.relname AS TABLE_NAME, a.attname AS COLUMN_NAME,   (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME,   information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM FROM pg_catalog.pg_class ct   JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)   JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)   JOIN pg_catalog.pg_index i ON ( a.attrelid = i.indrelid)   JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) WHERE true  AND n.nspname = 'public' AND ct.relname = 'people' AND i.indisprimary  ) result where  result.A_ATTNUM = (result.KEYS).x  ORDER BY result.table_name, result.pk_name, result.key_seq;

-- [13] catalogue | extended | sent 2x | by: getImportedKeys
-- result: setting text
SELECT setting FROM pg_catalog.pg_settings WHERE name='max_index_keys';

-- [14] catalogue | extended | sent 2x | by: getImportedKeys
-- result: pktable_cat text, pktable_schem name, pktable_name name, pkcolumn_name name, fktable_cat text, fktable_schem name, fktable_name name, fkcolumn_name name, key_seq integer, update_rule integer, delete_rule integer, fk_name name, pk_name name, deferrability integer
SELECT NULL::text AS PKTABLE_CAT, pkn.nspname AS PKTABLE_SCHEM, pkc.relname AS PKTABLE_NAME, pka.attname AS PKCOLUMN_NAME, NULL::text AS FKTABLE_CAT, fkn.nspname AS FKTABLE_SCHEM, fkc.relname AS FKTABLE_NAME, fka.attname AS FKCOLUMN_NAME, pos.n AS KEY_SEQ, CASE con.confupdtype  WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS UPDATE_RULE, CASE con.confdeltype  WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS DELETE_RULE, con.conname AS FK_NAME, pkic.relname AS PK_NAME, CASE  WHEN con.condeferrable AND con.condeferred THEN 5 WHEN con.condeferrable THEN 6 ELSE 7 END AS DEFERRABILITY  FROM  pg_catalog.pg_namespace pkn, pg_catalog.pg_class pkc, pg_catalog.pg_attribute pka,  pg_catalog.pg_namespace fkn, pg_catalog.pg_class fkc, pg_catalog.pg_attribute fka,  pg_catalog.pg_constraint con,  pg_catalog.generate_series(1, 32) pos(n),  pg_catalog.pg_class pkic WHERE pkn.oid = pkc.relnamespace AND pkc.oid = pka.attrelid AND pka.attnum = con.confkey[pos.n] AND con.confrelid = pkc.oid  AND fkn.oid = fkc.relnamespace AND fkc.oid = fka.attrelid AND fka.attnum = con.conkey[pos.n] AND con.conrelid = fkc.oid  AND con.contype = 'f' AND (pkic.relkind = 'i' OR pkic.relkind = 'I') AND pkic.oid = con.conindid  AND fkn.nspname = 'public' AND fkc.relname = 'people' ORDER BY pkn.nspname,pkc.relname, con.conname,pos.n;

-- [15] catalogue | extended | sent 2x | by: getExportedKeys
-- result: pktable_cat text, pktable_schem name, pktable_name name, pkcolumn_name name, fktable_cat text, fktable_schem name, fktable_name name, fkcolumn_name name, key_seq integer, update_rule integer, delete_rule integer, fk_name name, pk_name name, deferrability integer
SELECT NULL::text AS PKTABLE_CAT, pkn.nspname AS PKTABLE_SCHEM, pkc.relname AS PKTABLE_NAME, pka.attname AS PKCOLUMN_NAME, NULL::text AS FKTABLE_CAT, fkn.nspname AS FKTABLE_SCHEM, fkc.relname AS FKTABLE_NAME, fka.attname AS FKCOLUMN_NAME, pos.n AS KEY_SEQ, CASE con.confupdtype  WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS UPDATE_RULE, CASE con.confdeltype  WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS DELETE_RULE, con.conname AS FK_NAME, pkic.relname AS PK_NAME, CASE  WHEN con.condeferrable AND con.condeferred THEN 5 WHEN con.condeferrable THEN 6 ELSE 7 END AS DEFERRABILITY  FROM  pg_catalog.pg_namespace pkn, pg_catalog.pg_class pkc, pg_catalog.pg_attribute pka,  pg_catalog.pg_namespace fkn, pg_catalog.pg_class fkc, pg_catalog.pg_attribute fka,  pg_catalog.pg_constraint con,  pg_catalog.generate_series(1, 32) pos(n),  pg_catalog.pg_class pkic WHERE pkn.oid = pkc.relnamespace AND pkc.oid = pka.attrelid AND pka.attnum = con.confkey[pos.n] AND con.confrelid = pkc.oid  AND fkn.oid = fkc.relnamespace AND fkc.oid = fka.attrelid AND fka.attnum = con.conkey[pos.n] AND con.conrelid = fkc.oid  AND con.contype = 'f' AND (pkic.relkind = 'i' OR pkic.relkind = 'I') AND pkic.oid = con.conindid  AND pkn.nspname = 'public' AND pkc.relname = 'people' ORDER BY fkn.nspname,fkc.relname,con.conname,pos.n;

-- [16] catalogue | extended | sent 2x | by: getCrossReference
-- result: pktable_cat text, pktable_schem name, pktable_name name, pkcolumn_name name, fktable_cat text, fktable_schem name, fktable_name name, fkcolumn_name name, key_seq integer, update_rule integer, delete_rule integer, fk_name name, pk_name name, deferrability integer
SELECT NULL::text AS PKTABLE_CAT, pkn.nspname AS PKTABLE_SCHEM, pkc.relname AS PKTABLE_NAME, pka.attname AS PKCOLUMN_NAME, NULL::text AS FKTABLE_CAT, fkn.nspname AS FKTABLE_SCHEM, fkc.relname AS FKTABLE_NAME, fka.attname AS FKCOLUMN_NAME, pos.n AS KEY_SEQ, CASE con.confupdtype  WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS UPDATE_RULE, CASE con.confdeltype  WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS DELETE_RULE, con.conname AS FK_NAME, pkic.relname AS PK_NAME, CASE  WHEN con.condeferrable AND con.condeferred THEN 5 WHEN con.condeferrable THEN 6 ELSE 7 END AS DEFERRABILITY  FROM  pg_catalog.pg_namespace pkn, pg_catalog.pg_class pkc, pg_catalog.pg_attribute pka,  pg_catalog.pg_namespace fkn, pg_catalog.pg_class fkc, pg_catalog.pg_attribute fka,  pg_catalog.pg_constraint con,  pg_catalog.generate_series(1, 32) pos(n),  pg_catalog.pg_class pkic WHERE pkn.oid = pkc.relnamespace AND pkc.oid = pka.attrelid AND pka.attnum = con.confkey[pos.n] AND con.confrelid = pkc.oid  AND fkn.oid = fkc.relnamespace AND fkc.oid = fka.attrelid AND fka.attnum = con.conkey[pos.n] AND con.conrelid = fkc.oid  AND con.contype = 'f' AND (pkic.relkind = 'i' OR pkic.relkind = 'I') AND pkic.oid = con.conindid  AND pkn.nspname = 'public' AND fkn.nspname = 'public' AND pkc.relname = 'people' AND fkc.relname = 'orders' ORDER BY fkn.nspname,fkc.relname,con.conname,pos.n;

-- [17] catalogue | extended | sent 2x | by: getTypeInfo
-- result: typname name, oid oid
SELECT t.typname,t.oid FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON (t.typnamespace = n.oid)  WHERE n.nspname  != 'pg_toast' AND  (t.typrelid = 0 OR (SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid));

-- [18] catalogue | extended | sent 2x | by: getTypeInfo
-- result: is_array boolean, typtype "char", typname name, oid oid
SELECT typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid   FROM pg_catalog.pg_type   LEFT JOIN (select ns.oid as nspoid, ns.nspname, r.r           from pg_namespace as ns           join ( select s.r, (current_schemas(false))[s.r] as nspname                    from generate_series(1, array_upper(current_schemas(false), 1)) as s(r) ) as r          using ( nspname )        ) as sp     ON sp.nspoid = typnamespace  ORDER BY sp.r, pg_type.oid DESC;

-- [19] catalogue | extended | sent 2x | by: getSchemas
-- result: table_schem name, table_catalog text
SELECT nspname AS TABLE_SCHEM, NULL AS TABLE_CATALOG FROM pg_catalog.pg_namespace  WHERE nspname <> 'pg_toast' AND (nspname !~ '^pg_temp_'  OR nspname = (pg_catalog.current_schemas(true))[1]) AND (nspname !~ '^pg_toast_temp_'  OR nspname = replace((pg_catalog.current_schemas(true))[1], 'pg_temp_', 'pg_toast_temp_'))  ORDER BY TABLE_SCHEM;

-- [20] catalogue | extended | sent 2x | by: getSchemas(pattern)
-- result: table_schem name, table_catalog text
SELECT nspname AS TABLE_SCHEM, NULL AS TABLE_CATALOG FROM pg_catalog.pg_namespace  WHERE nspname <> 'pg_toast' AND (nspname !~ '^pg_temp_'  OR nspname = (pg_catalog.current_schemas(true))[1]) AND (nspname !~ '^pg_toast_temp_'  OR nspname = replace((pg_catalog.current_schemas(true))[1], 'pg_temp_', 'pg_toast_temp_'))  AND nspname LIKE 'pub%' ORDER BY TABLE_SCHEM;

-- [21] catalogue | extended | sent 2x | by: getTablePrivileges
-- result: nspname name, relname name, rolname name, relacl aclitem[]
SELECT n.nspname,c.relname,r.rolname,c.relacl  FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c, pg_catalog.pg_roles r  WHERE c.relnamespace = n.oid  AND c.relowner = r.oid  AND c.relkind IN ('r','p','v','m','f')  AND n.nspname LIKE 'public' AND c.relname LIKE 'people' ORDER BY nspname, relname;

-- [22] catalogue | extended | sent 2x | by: getColumnPrivileges
-- result: nspname name, relname name, rolname name, relacl aclitem[], attacl aclitem[], attname name
SELECT n.nspname,c.relname,r.rolname,c.relacl, a.attacl,  a.attname  FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c,  pg_catalog.pg_roles r, pg_catalog.pg_attribute a  WHERE c.relnamespace = n.oid  AND c.relowner = r.oid  AND c.oid = a.attrelid  AND c.relkind = 'r'  AND a.attnum > 0 AND NOT a.attisdropped  AND n.nspname = 'public' AND c.relname = 'people' AND a.attname LIKE '%' ORDER BY attname;

-- [23] catalogue | extended | sent 2x | by: getFunctions
-- result: function_cat name, function_schem name, function_name name, remarks text, function_type integer, specific_name text
SELECT current_database() AS FUNCTION_CAT, n.nspname AS FUNCTION_SCHEM, p.proname AS FUNCTION_NAME,  d.description AS REMARKS,  CASE    WHEN (format_type(p.prorettype, null) = 'unknown') THEN 0   WHEN      (substring(pg_get_function_result(p.oid) from 0 for 6) = 'TABLE') OR      (substring(pg_get_function_result(p.oid) from 0 for 6) = 'SETOF') THEN 2   ELSE 1 END  AS FUNCTION_TYPE,  p.proname || '_' || p.oid AS SPECIFIC_NAME FROM pg_catalog.pg_proc p INNER JOIN pg_catalog.pg_namespace n ON p.pronamespace=n.oid LEFT JOIN pg_catalog.pg_description d ON p.oid=d.objoid WHERE true   AND p.prokind='f' AND p.proname LIKE 'lower%' ORDER BY FUNCTION_SCHEM, FUNCTION_NAME, p.oid::text;

-- [24] catalogue | extended | sent 2x | by: getFunctions(schema)
-- result: function_cat name, function_schem name, function_name name, remarks text, function_type integer, specific_name text
SELECT current_database() AS FUNCTION_CAT, n.nspname AS FUNCTION_SCHEM, p.proname AS FUNCTION_NAME,  d.description AS REMARKS,  CASE    WHEN (format_type(p.prorettype, null) = 'unknown') THEN 0   WHEN      (substring(pg_get_function_result(p.oid) from 0 for 6) = 'TABLE') OR      (substring(pg_get_function_result(p.oid) from 0 for 6) = 'SETOF') THEN 2   ELSE 1 END  AS FUNCTION_TYPE,  p.proname || '_' || p.oid AS SPECIFIC_NAME FROM pg_catalog.pg_proc p INNER JOIN pg_catalog.pg_namespace n ON p.pronamespace=n.oid LEFT JOIN pg_catalog.pg_description d ON p.oid=d.objoid WHERE true   AND p.prokind='f' AND n.nspname LIKE 'pg_catalog' AND p.proname LIKE '%' ORDER BY FUNCTION_SCHEM, FUNCTION_NAME, p.oid::text;

-- [25] catalogue | extended | sent 4x | by: getFunctionColumns; getProcedureColumns
-- result: nspname name, proname name, prorettype oid, proargtypes oidvector, typtype "char", typrelid oid, proargnames text[], proargmodes "char"[], proallargtypes oid[], oid oid
SELECT n.nspname,p.proname,p.prorettype,p.proargtypes, t.typtype,t.typrelid,  p.proargnames, p.proargmodes, p.proallargtypes, p.oid  FROM pg_catalog.pg_proc p, pg_catalog.pg_namespace n, pg_catalog.pg_type t  WHERE p.pronamespace=n.oid AND p.prorettype=t.oid  AND p.proname LIKE 'lower' ORDER BY n.nspname, p.proname, p.oid::text;

-- [26] catalogue | extended | sent 2x | by: getProcedures
-- result: procedure_cat text, procedure_schem name, procedure_name name, ?column? text, ?column? text, ?column? text, remarks text, procedure_type integer, specific_name text
SELECT NULL AS PROCEDURE_CAT, n.nspname AS PROCEDURE_SCHEM, p.proname AS PROCEDURE_NAME, NULL, NULL, NULL, d.description AS REMARKS, 2 AS PROCEDURE_TYPE,  p.proname || '_' || p.oid AS SPECIFIC_NAME  FROM pg_catalog.pg_namespace n, pg_catalog.pg_proc p  LEFT JOIN pg_catalog.pg_description d ON (p.oid=d.objoid)  LEFT JOIN pg_catalog.pg_class c ON (d.classoid=c.oid AND c.relname='pg_proc')  LEFT JOIN pg_catalog.pg_namespace pn ON (c.relnamespace=pn.oid AND pn.nspname='pg_catalog')  WHERE p.pronamespace=n.oid  AND p.prokind='p' AND p.proname LIKE '%' ORDER BY PROCEDURE_SCHEM, PROCEDURE_NAME, p.oid::text;

-- [27] catalogue | extended | sent 2x | by: getBestRowIdentifier
-- result: attname name, atttypid oid, atttypmod integer
SELECT a.attname, a.atttypid, atttypmod FROM pg_catalog.pg_class ct   JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)   JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)   JOIN (SELECT i.indexrelid, i.indrelid, i.indisprimary,              information_schema._pg_expandarray(i.indkey) AS keys         FROM pg_catalog.pg_index i) i     ON (a.attnum = (i.keys).x AND a.attrelid = i.indrelid) WHERE true  AND n.nspname = 'public' AND ct.relname = 'people' AND i.indisprimary  ORDER BY a.attnum;

-- [28] catalogue | extended | sent 1x | by: getUDTs
-- result: type_cat text, type_schem name, type_name name, class_name text, data_type integer, remarks text, base_type integer
select null as type_cat, n.nspname as type_schem, t.typname as type_name,  null as class_name, CASE WHEN t.typtype='c' then 2002 else 2001 end as data_type, pg_catalog.obj_description(t.oid, 'pg_type')  as remarks, CASE WHEN t.typtype = 'd' then  (select CASE when base_type.oid = <oid> then 12 when base_type.oid = 13312 then 2003 when base_type.oid = 4096 then 1111 when base_type.oid = <oid:array of people> then 2003 when base_type.oid = 13317 then 2003 when base_type.oid = <oid:row type of people> then 2002 when base_type.oid = 13318 then 2002 when base_type.oid = 12294 then 2003 when base_type.oid = 6150 then 2003 when base_type.oid = <oid:array of orders> then 2003 when base_type.oid = <oid:row type of orders> then 2002 when base_type.oid = 6157 then 2003 when base_type.oid = 12302 then 2003 when base_type.oid = 13327 then 2003 when base_type.oid = <oid:array of adults> then 2003 when base_type.oid = <oid:row type of adults> then 2002 when base_type.oid = 12312 then 2003 when base_type.oid = 24 then 1111 when base_type.oid = 25 then 12 else 1111 end from pg_type base_type where base_type.oid=t.typbasetype) else null end as base_type from pg_catalog.pg_type t, pg_catalog.pg_namespace n where t.typnamespace = n.oid and n.nspname != 'pg_catalog' and n.nspname != 'pg_toast' and t.typtype IN ('c','d')  and t.typname like '%' order by data_type, type_schem, type_name;

-- [29] catalogue | extended | sent 2x | by: getClientInfoProperties
-- result: typlen smallint
SELECT t.typlen FROM pg_catalog.pg_type t, pg_catalog.pg_namespace n WHERE t.typnamespace=n.oid AND t.typname='name' AND n.nspname='pg_catalog';

-- [30] catalogue | extended | sent 2x | by: getSQLKeywords
-- result: string_agg text
select string_agg(word, ',') from pg_catalog.pg_get_keywords() where word <> ALL ('{a,abs,absolute,action,ada,add,admin,after,all,allocate,alter,always,and,any,are,array,as,asc,asensitive,assertion,assignment,asymmetric,at,atomic,attribute,attributes,authorization,avg,before,begin,bernoulli,between,bigint,binary,blob,boolean,both,breadth,by,c,call,called,cardinality,cascade,cascaded,case,cast,catalog,catalog_name,ceil,ceiling,chain,char,char_length,character,character_length,character_set_catalog,character_set_name,character_set_schema,characteristics,characters,check,checked,class_origin,clob,close,coalesce,cobol,code_units,collate,collation,collation_catalog,collation_name,collation_schema,collect,column,column_name,command_function,command_function_code,commit,committed,condition,condition_number,connect,connection_name,constraint,constraint_catalog,constraint_name,constraint_schema,constraints,constructors,contains,continue,convert,corr,corresponding,count,covar_pop,covar_samp,create,cross,cube,cume_dist,current,current_collation,current_date,current_default_transform_group,current_path,current_role,current_time,current_timestamp,current_transform_group_for_type,current_user,cursor,cursor_name,cycle,data,date,datetime_interval_code,datetime_interval_precision,day,deallocate,dec,decimal,declare,default,defaults,deferrable,deferred,defined,definer,degree,delete,dense_rank,depth,deref,derived,desc,describe,descriptor,deterministic,diagnostics,disconnect,dispatch,distinct,domain,double,drop,dynamic,dynamic_function,dynamic_function_code,each,element,else,end,end-exec,equals,escape,every,except,exception,exclude,excluding,exec,execute,exists,exp,external,extract,false,fetch,filter,final,first,float,floor,following,for,foreign,fortran,found,free,from,full,function,fusion,g,general,get,global,go,goto,grant,granted,group,grouping,having,hierarchy,hold,hour,identity,immediate,implementation,in,including,increment,indicator,initially,inner,inout,input,insensitive,insert,instance,instantiable,int,integer,intersect,intersection,interval,into,invoker,is,isolation,join,k,key,key_member,key_type,language,large,last,lateral,leading,left,length,level,like,ln,local,localtime,localtimestamp,locator,lower,m,map,match,matched,max,maxvalue,member,merge,message_length,message_octet_length,message_text,method,min,minute,minvalue,mod,modifies,module,month,more,multiset,mumps,name,names,national,natural,nchar,nclob,nesting,new,next,no,none,normalize,normalized,not,"null",nullable,nullif,nulls,number,numeric,object,octet_length,octets,of,old,on,only,open,option,options,or,order,ordering,ordinality,others,out,outer,output,over,overlaps,overlay,overriding,pad,parameter,parameter_mode,parameter_name,parameter_ordinal_position,parameter_specific_catalog,parameter_specific_name,parameter_specific_schema,partial,partition,pascal,path,percent_rank,percentile_cont,percentile_disc,placing,pli,position,power,preceding,precision,prepare,preserve,primary,prior,privileges,procedure,public,range,rank,read,reads,real,recursive,ref,references,referencing,regr_avgx,regr_avgy,regr_count,regr_intercept,regr_r2,regr_slope,regr_sxx,regr_sxy,regr_syy,relative,release,repeatable,restart,result,return,returned_cardinality,returned_length,returned_octet_length,returned_sqlstate,returns,revoke,right,role,rollback,rollup,routine,routine_catalog,routine_name,routine_schema,row,row_count,row_number,rows,savepoint,scale,schema,schema_name,scope_catalog,scope_name,scope_schema,scroll,search,second,section,security,select,self,sensitive,sequence,serializable,server_name,session,session_user,set,sets,similar,simple,size,smallint,some,source,space,specific,specific_name,specifictype,sql,sqlexception,sqlstate,sqlwarning,sqrt,start,state,statement,static,stddev_pop,stddev_samp,structure,style,subclass_origin,submultiset,substring,sum,symmetric,system,system_user,table,table_name,tablesample,temporary,then,ties,time,timestamp,timezone_hour,timezone_minute,to,top_level_count,trailing,transaction,transaction_active,transactions_committed,transactions_rolled_back,transform,transforms,translate,translation,treat,trigger,trigger_catalog,trigger_name,trigger_schema,trim,true,type,uescape,unbounded,uncommitted,under,union,unique,unknown,unnamed,unnest,update,upper,usage,user,user_defined_type_catalog,user_defined_type_code,user_defined_type_name,user_defined_type_schema,using,value,values,var_pop,var_samp,varchar,varying,view,when,whenever,where,width_bucket,window,with,within,without,work,write,year,zone}'::text[]);

-- [31] catalogue | extended | sent 4x | by: ResultSetMetaData; updatable ResultSet
-- result: oid oid, attnum smallint, attname name, relname name, nspname name, ?column? boolean, ?column? boolean
SELECT c.oid, a.attnum, a.attname, c.relname, n.nspname, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull), a.attidentity != '' OR pg_catalog.pg_get_expr(d.adbin, d.adrelid) LIKE '%nextval(%' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON (c.relnamespace = n.oid) JOIN pg_catalog.pg_attribute a ON (c.oid = a.attrelid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid) LEFT JOIN pg_catalog.pg_attrdef d ON (d.adrelid = a.attrelid AND d.adnum = a.attnum) JOIN (SELECT <oid:people> AS oid , 1 AS attnum UNION ALL SELECT <oid:people>, 2) vals ON (c.oid = vals.oid AND a.attnum = vals.attnum);

-- [32] catalogue | extended | sent 2x | by: updatable ResultSet
-- result: table_cat text, table_schem name, table_name name, column_name name, key_seq integer, pk_name name, is_not_null boolean
SELECT        result.TABLE_CAT,        result.TABLE_SCHEM,        result.TABLE_NAME,        result.COLUMN_NAME,        result.KEY_SEQ,        result.PK_NAME,        result.IS_NOT_NULL FROM      (SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM,   ct.relname AS TABLE_NAME, a.attname AS COLUMN_NAME,   (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME,   information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM,   a.attnotnull AS IS_NOT_NULL FROM pg_catalog.pg_class ct   JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)   JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)   JOIN pg_catalog.pg_index i ON ( a.attrelid = i.indrelid)   JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) WHERE (i.indisprimary OR (     i.indisunique     AND i.indisvalid     AND i.indpred IS NULL     AND i.indexprs IS NULL   ))  AND ct.relname = 'orders' ) result where  result.A_ATTNUM = (result.KEYS).x  ORDER BY result.table_name, result.pk_name, result.key_seq;

-- [33] catalogue | extended | sent 2x | by: getObject of unknown type
-- result: doc jsonb, name name, regclass regclass, int4range int4range, now timestamp with time zone, interval interval, record record
select doc, 'a'::name, 'people'::regclass, int4range(1,2), now(), '1 day'::interval, null::record from people limit 1;

-- [34] catalogue | extended | sent 2x | by: LargeObject
-- result: proname name, oid oid
SELECT p.proname,p.oid  FROM pg_catalog.pg_proc p, pg_catalog.pg_namespace n  WHERE p.pronamespace=n.oid AND n.nspname='pg_catalog' AND ( proname = 'lo_open' or proname = 'lo_close' or proname = 'lo_creat' or proname = 'lo_unlink' or proname = 'lo_lseek' or proname = 'lo_lseek64' or proname = 'lo_tell' or proname = 'lo_tell64' or proname = 'loread' or proname = 'lowrite' or proname = 'lo_truncate' or proname = 'lo_truncate64');

-- [35] catalogue | simple | sent 2x | by: connect preferQueryMode=simple
-- result: ?column? boolean, nspname name, typname name
SELECT n.nspname = ANY(current_schemas(true)), n.nspname, t.typname FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid WHERE t.oid = ('3802'::int4);

-- [36] catalogue | simple | sent 2x | by: connect preferQueryMode=simple
-- result: is_array boolean, typtype "char", typname name, oid oid
SELECT typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid   FROM pg_catalog.pg_type   LEFT JOIN (select ns.oid as nspoid, ns.nspname, r.r           from pg_namespace as ns           join ( select s.r, (current_schemas(false))[s.r] as nspname                    from generate_series(1, array_upper(current_schemas(false), 1)) as s(r) ) as r          using ( nspname )        ) as sp     ON sp.nspoid = typnamespace  WHERE pg_type.oid = ('3802'::int8)  ORDER BY sp.r, pg_type.oid DESC;

-- [37] catalogue | extended | sent 2x | by: types: getUDTs, getObject, getColumns
-- result: type_cat text, type_schem name, type_name name, class_name text, data_type integer, remarks text, base_type integer
select null as type_cat, n.nspname as type_schem, t.typname as type_name,  null as class_name, CASE WHEN t.typtype='c' then 2002 else 2001 end as data_type, pg_catalog.obj_description(t.oid, 'pg_type')  as remarks, CASE WHEN t.typtype = 'd' then  (select CASE when base_type.oid = 1028 then 2003 when base_type.oid = 2950 then 1111 when base_type.oid = 2951 then 2003 else 1111 end from pg_type base_type where base_type.oid=t.typbasetype) else null end as base_type from pg_catalog.pg_type t, pg_catalog.pg_namespace n where t.typnamespace = n.oid and n.nspname != 'pg_catalog' and n.nspname != 'pg_toast' and t.typtype IN ('c','d')  and t.typname like '%' order by data_type, type_schem, type_name;

-- [38] catalogue | extended | sent 2x | by: types: getUDTs, getObject, getColumns
-- result: nspname name, relname name, attname name, atttypid oid, attnotnull boolean, atttypmod integer, attlen smallint, typtypmod integer, attnum bigint, attidentity "char", attgenerated "char", adsrc text, description text, typbasetype oid, typtype "char"
SELECT * FROM (SELECT n.nspname,c.relname,a.attname,a.atttypid,a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull,a.atttypmod,a.attlen,t.typtypmod,row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum, nullif(a.attidentity, '') as attidentity,nullif(a.attgenerated, '') as attgenerated,pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype  FROM pg_catalog.pg_namespace n  JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid)  JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid)  JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)  LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum)  LEFT JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)  LEFT JOIN pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class')  LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog')  WHERE c.relkind in ('r','p','v','f','m') and a.attnum > 0 AND NOT a.attisdropped  AND n.nspname LIKE 'public' AND c.relname LIKE 't') c WHERE true  ORDER BY nspname,c.relname,attnum;

-- [39] catalogue | extended | sent 2x | by: types: select enum, composite, hstore
-- result: oid oid, attnum smallint, attname name, relname name, nspname name, ?column? boolean, ?column? boolean
SELECT c.oid, a.attnum, a.attname, c.relname, n.nspname, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull), a.attidentity != '' OR pg_catalog.pg_get_expr(d.adbin, d.adrelid) LIKE '%nextval(%' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON (c.relnamespace = n.oid) JOIN pg_catalog.pg_attribute a ON (c.oid = a.attrelid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid) LEFT JOIN pg_catalog.pg_attrdef d ON (d.adrelid = a.attrelid AND d.adnum = a.attnum) JOIN (SELECT <oid:t> AS oid , 2 AS attnum UNION ALL SELECT <oid:t>, 3 UNION ALL SELECT <oid:t>, 4 UNION ALL SELECT <oid:t>, 5) vals ON (c.oid = vals.oid AND a.attnum = vals.attnum);

-- [40] catalogue | extended | sent 2x | by: XA: recover
-- result: gid text
SELECT gid FROM pg_prepared_xacts where database = current_database();

-- [41] catalogue | extended | sent 1x | by: getUDTs
-- result: type_cat text, type_schem name, type_name name, class_name text, data_type integer, remarks text, base_type integer
select null as type_cat, n.nspname as type_schem, t.typname as type_name,  null as class_name, CASE WHEN t.typtype='c' then 2002 else 2001 end as data_type, pg_catalog.obj_description(t.oid, 'pg_type')  as remarks, CASE WHEN t.typtype = 'd' then  (select CASE when base_type.oid = 13312 then 2003 when base_type.oid = 4096 then 1111 when base_type.oid = 13313 then 2002 when base_type.oid = <oid:array of people> then 2003 when base_type.oid = 13317 then 2003 when base_type.oid = <oid:row type of people> then 2002 when base_type.oid = 13318 then 2002 when base_type.oid = 12294 then 2003 when base_type.oid = 6150 then 2003 when base_type.oid = <oid:array of orders> then 2003 when base_type.oid = <oid:row type of orders> then 2002 when base_type.oid = 6157 then 2003 when base_type.oid = 12302 then 2003 when base_type.oid = 13327 then 2003 when base_type.oid = <oid:array of adults> then 2003 when base_type.oid = <oid:row type of adults> then 2002 when base_type.oid = 12312 then 2003 when base_type.oid = 24 then 1111 when base_type.oid = 25 then 12 else 1111 end from pg_type base_type where base_type.oid=t.typbasetype) else null end as base_type from pg_catalog.pg_type t, pg_catalog.pg_namespace n where t.typnamespace = n.oid and n.nspname != 'pg_catalog' and n.nspname != 'pg_toast' and t.typtype IN ('c','d')  and t.typname like '%' order by data_type, type_schem, type_name;

-- [42] session | extended and simple | sent 22x | by: connect; connect prepareThreshold=1&binaryTransfer=true; connect preferQueryMode=simple; connect targetServerType=primary; connect targetServerType=preferSecondary; … (11 actions)
-- wire: Execute limit 1
-- result: SET
SET extra_float_digits = 3;

-- [43] session | extended and simple | sent 20x | by: connect; connect prepareThreshold=1&binaryTransfer=true; connect preferQueryMode=simple; connect targetServerType=primary; connect targetServerType=preferSecondary; … (10 actions)
-- wire: Execute limit 1
-- result: SET
SET application_name = 'PostgreSQL JDBC Driver';

-- [44] session | extended and simple | sent 24x | by: Statement.executeQuery; savepoint; setTransactionIsolation, readOnly; setNetworkTimeout / setQueryTimeout; connect prepareThreshold=1&binaryTransfer=true; … (12 actions)
-- wire: named statement
-- result: ?column? integer
select 1;

-- [45] session | extended and simple | sent 20x | by: setAutoCommit(false), fetchSize; savepoint; LargeObject; connect prepareThreshold=1&binaryTransfer=true; connect preferQueryMode=simple; … (10 actions)
-- wire: named statement
-- result: BEGIN
BEGIN;

-- [46] session | extended and simple | sent 18x | by: setAutoCommit(false), fetchSize; connect prepareThreshold=1&binaryTransfer=true; connect preferQueryMode=simple; connect targetServerType=primary; connect targetServerType=preferSecondary; … (10 actions)
-- wire: Execute limit 1, named statement
-- result: COMMIT
COMMIT;

-- [47] session | extended | sent 2x | by: savepoint
-- wire: Execute limit 1
-- result: SAVEPOINT
SAVEPOINT JDBC_SAVEPOINT_0;

-- [48] session | extended | sent 2x | by: savepoint
-- wire: Execute limit 1
-- result: ROLLBACK
ROLLBACK TO SAVEPOINT JDBC_SAVEPOINT_0;

-- [49] session | extended | sent 2x | by: savepoint
-- wire: Execute limit 1
-- result: SAVEPOINT
SAVEPOINT "n";

-- [50] session | extended | sent 2x | by: savepoint
-- wire: Execute limit 1
-- result: RELEASE
RELEASE SAVEPOINT "n";

-- [51] session | extended | sent 4x | by: savepoint; LargeObject
-- wire: Execute limit 1, named statement
-- result: ROLLBACK
ROLLBACK;

-- [52] session | extended | sent 2x | by: setTransactionIsolation, readOnly
-- wire: Execute limit 1
-- result: SET
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE;

-- [53] session | extended | sent 4x | by: setTransactionIsolation, readOnly; connect readOnly=true&autosave=always
-- result: BEGIN
BEGIN READ ONLY;

-- [54] session | extended | sent 2x | by: setTransactionIsolation, readOnly
-- result: transaction_isolation text
SHOW TRANSACTION ISOLATION LEVEL;

-- [55] session | extended | sent 2x | by: getSchema/setSchema/getCatalog
-- result: current_schema name
select current_schema();

-- [56] session | extended | sent 2x | by: getSchema/setSchema/getCatalog
-- wire: Execute limit 1
-- result: SET
SET SESSION search_path TO 'public';

-- [57] session | extended | sent 2x | by: isValid
-- wire: Execute limit 1
-- result: I
-- (empty statement)

-- [58] session | extended | sent 2x | by: setClientInfo
-- wire: Execute limit 1
-- result: SET
SET application_name = 'x';

-- [59] session | extended | sent 2x | by: escape syntax
-- result: now timestamp with time zone, date date
select now(), DATE '2020-01-01';

-- [60] session | extended | sent 4x | by: connect targetServerType=primary; connect targetServerType=preferSecondary
-- result: transaction_read_only text
show transaction_read_only;

-- [61] session | extended | sent 2x | by: connect ApplicationName=a&currentSchema=public&options=-c%20work_mem=4MB
-- wire: Execute limit 1
-- result: SET
SET application_name = 'a';

-- [62] session | simple | sent 2x | by: connect readOnly=true&autosave=always
-- result: SAVEPOINT
SAVEPOINT PGJDBC_AUTOSAVE;

-- [63] data | extended | sent 2x | by: ResultSetMetaData
-- result: id text, doc jsonb, one integer
select id, doc, 1 as one from people limit 2;

-- [64] data | extended | sent 10x | by: PreparedStatement
-- parameters: $1 text (Parse says character varying) = 'p1', $2 bigint (Parse says integer) = 3
-- wire: binary parameters, named statement
-- result: id text, doc jsonb
select id, doc from people where id=$1 limit $2;

-- [65] data | extended | sent 18x | by: PreparedStatement.getMetaData; connect prepareThreshold=1&binaryTransfer=true; connect targetServerType=primary; connect targetServerType=preferSecondary; connect ApplicationName=a&currentSchema=public&options=-c%20work_mem=4MB; … (8 actions)
-- parameters: $1 text (Parse says unspecified) = 'p1'
-- wire: named statement
-- result: id text, doc jsonb
select id, doc from people where id=$1;

-- [66] data | extended | sent 2x | by: setArray
-- parameters: $1 text[] = {p1}
-- wire: binary parameters
-- result: id text
select id from people where id=any($1);

-- [67] data | extended | sent 2x | by: setObject jsonb (PGobject)
-- parameters: $1 text (Parse says character varying) = 'jd1', $2 jsonb = '{}'
-- wire: Execute limit 1
-- result: INSERT n n
insert into orders values($1,$2) on conflict do nothing;

-- [68] data | extended | sent 2x | by: RETURN_GENERATED_KEYS
-- result: id text, doc jsonb
insert into orders values('jd2','{}') on conflict do nothing
RETURNING *;

-- [69] data | extended | sent 2x | by: generated key column names
-- result: id text
insert into orders values('jd3','{}') on conflict do nothing
RETURNING "id";

-- [70] data | extended | sent 2x | by: addBatch
-- parameters: $1 character varying = 'jb1'
-- wire: Execute limit 1, named statement
-- result: INSERT n n
insert into orders(id) values($1) on conflict do nothing;

-- [71] data | extended | sent 2x | by: updatable ResultSet
-- result: id text, doc jsonb
select id, doc from orders where id='jd2';

-- [72] data | extended | sent 2x | by: updatable ResultSet
-- parameters: $1 jsonb = NULL, $2 text (Parse says character varying) = 'jd2'
-- wire: Execute limit 1
-- result: UPDATE n
UPDATE orders SET  "doc" = $1 WHERE "id" = $2;

-- [73] data | extended | sent 2x | by: updatable ResultSet
-- parameters: $1 text (Parse says character varying) = 'jd2'
-- result: id text, doc jsonb
select "id", "doc" from orders where "id" = $1;

-- [74] data | extended | sent 2x | by: updatable ResultSet
-- parameters: $1 text (Parse says character varying) = 'jd2'
-- wire: Execute limit 1
-- result: DELETE n
DELETE FROM orders where "id" = $1;

-- [75] data | extended | sent 2x | by: setAutoCommit(false), fetchSize
-- wire: Execute limit 10
-- result: id text
select id from people;

-- [76] data | extended | sent 2x | by: CallableStatement
-- parameters: $1 unspecified (Parse says void) = NULL, $2 unspecified (Parse says character varying) = 'A'
-- result: result text
select * from lower($1,$2) as result;

-- [77] data | extended | sent 2x | by: createArrayOf/getArray
-- result: array character varying[], array bigint[]
select array['a','b']::varchar[], array[1]::int8[];

-- [78] data | simple | sent 2x | by: CopyManager
-- result: COPY n
copy people to stdout;

-- [79] data | simple | sent 2x | by: connect preferQueryMode=simple
-- result: id text, doc jsonb
select id, doc from people where id=('p1');

-- [80] data | extended | sent 2x | by: types: select enum, composite, hstore
-- result: m mood, p point2, h hstore, d deep, array mood[]
select m,p,h,d,array['ok'::mood] from t;
