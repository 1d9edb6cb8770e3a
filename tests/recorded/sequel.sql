-- sequel: Sequel of Debian (5.63.0)
-- 38 statements: 19 catalogue, 12 session, 7 data

-- [1] catalogue | simple | sent 1x | by: tables
-- result: relname name
SELECT "relname" FROM "pg_class" INNER JOIN "pg_namespace" ON ("pg_namespace"."oid" = "pg_class"."relnamespace") WHERE (("relkind" IN ('r', 'p')) AND ("pg_namespace"."nspname" = any(current_schemas(false))));

-- [2] catalogue | simple | sent 1x | by: views
-- result: relname name
SELECT "relname" FROM "pg_class" INNER JOIN "pg_namespace" ON ("pg_namespace"."oid" = "pg_class"."relnamespace") WHERE (("relkind" = 'v') AND ("pg_namespace"."nspname" = any(current_schemas(false))));

-- [3] catalogue | simple | sent 1x | by: schema
-- result: name name, oid integer, base_oid integer, db_base_type text, db_type text, default text, allow_null boolean, primary_key boolean, attidentity "char", generated boolean
SELECT "pg_attribute"."attname" AS "name", CAST("pg_attribute"."atttypid" AS integer) AS "oid", CAST("basetype"."oid" AS integer) AS "base_oid", format_type("basetype"."oid", "pg_type"."typtypmod") AS "db_base_type", format_type("pg_type"."oid", "pg_attribute"."atttypmod") AS "db_type", pg_get_expr("pg_attrdef"."adbin", "pg_class"."oid") AS "default", NOT "pg_attribute"."attnotnull" AS "allow_null", COALESCE(("pg_attribute"."attnum" = ANY("pg_index"."indkey")), false) AS "primary_key", "pg_attribute"."attidentity", ("pg_attribute"."attgenerated" != '') AS "generated" FROM "pg_class" INNER JOIN "pg_attribute" ON ("pg_attribute"."attrelid" = "pg_class"."oid") INNER JOIN "pg_type" ON ("pg_type"."oid" = "pg_attribute"."atttypid") LEFT OUTER JOIN "pg_type" AS "basetype" ON ("basetype"."oid" = "pg_type"."typbasetype") LEFT OUTER JOIN "pg_attrdef" ON (("pg_attrdef"."adrelid" = "pg_class"."oid") AND ("pg_attrdef"."adnum" = "pg_attribute"."attnum")) LEFT OUTER JOIN "pg_index" ON (("pg_index"."indrelid" = "pg_class"."oid") AND ("pg_index"."indisprimary" IS TRUE)) WHERE (("pg_attribute"."attisdropped" IS FALSE) AND ("pg_attribute"."attnum" > 0) AND ("pg_class"."oid" = CAST(CAST('"people"' AS regclass) AS oid))) ORDER BY "pg_attribute"."attnum";

-- [4] catalogue | simple | sent 1x | by: indexes
-- result: name name, unique boolean, column name, deferrable boolean
SELECT "indc"."relname" AS "name", "ind"."indisunique" AS "unique", "att"."attname" AS "column", "con"."condeferrable" AS "deferrable" FROM "pg_class" AS "tab" INNER JOIN "pg_index" AS "ind" ON ("ind"."indrelid" = "tab"."oid") INNER JOIN "pg_class" AS "indc" ON ("indc"."oid" = "ind"."indexrelid") INNER JOIN "pg_attribute" AS "att" ON (("att"."attrelid" = "tab"."oid") AND ("att"."attnum" = ANY("ind"."indkey"))) LEFT JOIN "pg_constraint" AS "con" ON ("con"."conname" = "indc"."relname") WHERE (("indc"."relkind" = 'i') AND ("ind"."indisprimary" IS FALSE) AND ("indexprs" IS NULL) AND ("indisvalid" IS TRUE) AND ("indisready" IS TRUE) AND ("indislive" IS TRUE) AND ("tab"."oid" = CAST(CAST('"people"' AS regclass) AS oid)) AND ("indpred" IS NULL)) ORDER BY "indc"."relname", array_position("ind"."indkey", "att"."attnum");

-- [5] catalogue | simple | sent 1x | by: foreign_key_list
-- result: name name, column name, on_update "char", on_delete "char", table name, refcolumn name, deferrable boolean, schema name
SELECT "co"."conname" AS "name", "att"."attname" AS "column", "co"."confupdtype" AS "on_update", "co"."confdeltype" AS "on_delete", "cl2"."relname" AS "table", "att2"."attname" AS "refcolumn", ("co"."condeferrable" AND "co"."condeferred") AS "deferrable", "nsp"."nspname" AS "schema" FROM "pg_constraint" AS "co" INNER JOIN "pg_class" AS "cl" ON ("cl"."oid" = "co"."conrelid") INNER JOIN "pg_attribute" AS "att" ON (("att"."attrelid" = "cl"."oid") AND ("att"."attnum" = ANY("co"."conkey"))) INNER JOIN "pg_class" AS "cl2" ON ("cl2"."oid" = "co"."confrelid") INNER JOIN "pg_attribute" AS "att2" ON (("att2"."attrelid" = "cl2"."oid") AND ("att2"."attnum" = ANY("co"."confkey"))) INNER JOIN "pg_namespace" AS "nsp" ON ("nsp"."oid" = "cl2"."relnamespace") WHERE (("cl"."relkind" IN ('r', 'p')) AND ("co"."contype" = 'f') AND (array_position("co"."conkey", "att"."attnum") = array_position("co"."confkey", "att2"."attnum")) AND ("cl"."oid" = CAST(CAST('"people"' AS regclass) AS oid))) ORDER BY "co"."conname", array_position("co"."conkey", "att"."attnum");

-- [6] catalogue | simple | sent 1x | by: check_constraints
-- result: constraint name, column name, definition text
SELECT "co"."conname" AS "constraint", "att"."attname" AS "column", pg_get_constraintdef("co"."oid") AS "definition" FROM "pg_constraint" AS "co" LEFT JOIN "pg_attribute" AS "att" ON (("att"."attrelid" = "co"."conrelid") AND ("att"."attnum" = ANY("co"."conkey"))) WHERE (("contype" = 'c') AND ("conrelid" = CAST(CAST('"people"' AS regclass) AS oid)));

-- [7] catalogue | simple | sent 1x | by: primary_key
-- result: pk name
SELECT "pg_attribute"."attname" AS "pk" FROM "pg_class", "pg_attribute", "pg_index", "pg_namespace" WHERE (("pg_class"."oid" = "pg_attribute"."attrelid") AND ("pg_class"."relnamespace" = "pg_namespace"."oid") AND ("pg_class"."oid" = "pg_index"."indrelid") AND ("pg_index"."indkey"[0] = "pg_attribute"."attnum") AND ("pg_index"."indisprimary" = 't') AND ("pg_class"."oid" = CAST(CAST('"people"' AS regclass) AS oid))) LIMIT 1;

-- [8] catalogue | simple | sent 1x | by: primary_key_sequence
-- result: schema name, sequence name
SELECT "name"."nspname" AS "schema", "seq"."relname" AS "sequence" FROM "pg_class" AS "seq", "pg_attribute" AS "attr", "pg_depend" AS "dep", "pg_namespace" AS "name", "pg_constraint" AS "cons", "pg_class" AS "t" WHERE (("seq"."oid" = "dep"."objid") AND ("seq"."relnamespace" = "name"."oid") AND ("seq"."relkind" = 'S') AND ("attr"."attrelid" = "dep"."refobjid") AND ("attr"."attnum" = "dep"."refobjsubid") AND ("attr"."attrelid" = "cons"."conrelid") AND ("attr"."attnum" = "cons"."conkey"[1]) AND ("attr"."attrelid" = "t"."oid") AND ("cons"."contype" = 'p') AND ("t"."oid" = CAST(CAST('"people"' AS regclass) AS oid))) LIMIT 1;

-- [9] catalogue | simple | sent 1x | by: primary_key_sequence
-- result: schema name, sequence text
SELECT "name"."nspname" AS "schema", (CASE WHEN (split_part(pg_get_expr("def"."adbin", "attr"."attrelid"), '''', 2) ~ '.') THEN substr(split_part(pg_get_expr("def"."adbin", "attr"."attrelid"), '''', 2), (strpos(split_part(pg_get_expr("def"."adbin", "attr"."attrelid"), '''', 2), '.') + 1)) ELSE split_part(pg_get_expr("def"."adbin", "attr"."attrelid"), '''', 2) END) AS "sequence" FROM "pg_class" AS "t" INNER JOIN "pg_namespace" AS "name" ON ("name"."oid" = "t"."relnamespace") INNER JOIN "pg_attribute" AS "attr" ON ("attr"."attrelid" = "t"."oid") INNER JOIN "pg_attrdef" AS "def" ON (("def"."adrelid" = "attr"."attrelid") AND ("def"."adnum" = "attr"."attnum")) INNER JOIN "pg_constraint" AS "cons" ON (("cons"."conrelid" = "def"."adrelid") AND ("cons"."conkey"[1] = "def"."adnum")) WHERE (("cons"."contype" = 'p') AND (pg_get_expr("def"."adbin", "attr"."attrelid") ~* 'nextval') AND ("t"."oid" = CAST(CAST('"people"' AS regclass) AS oid))) LIMIT 1;

-- [10] catalogue | simple | sent 1x | by: tables(qualify)
-- result: relname name, nspname name
SELECT "relname", "pg_namespace"."nspname" FROM "pg_class" INNER JOIN "pg_namespace" ON ("pg_namespace"."oid" = "pg_class"."relnamespace") WHERE (("relkind" IN ('r', 'p')) AND ("pg_namespace"."nspname" = any(current_schemas(false))));

-- [11] catalogue | simple | sent 1x | by: insert returning
-- result: pk name
SELECT "pg_attribute"."attname" AS "pk" FROM "pg_class", "pg_attribute", "pg_index", "pg_namespace" WHERE (("pg_class"."oid" = "pg_attribute"."attrelid") AND ("pg_class"."relnamespace" = "pg_namespace"."oid") AND ("pg_class"."oid" = "pg_index"."indrelid") AND ("pg_index"."indkey"[0] = "pg_attribute"."attnum") AND ("pg_index"."indisprimary" = 't') AND ("pg_class"."oid" = CAST(CAST('"orders"' AS regclass) AS oid))) LIMIT 1;

-- [12] catalogue | simple | sent 1x | by: types: pg_enum, pg_row
-- result: v integer, enumlabel name
SELECT CAST("enumtypid" AS integer) AS "v", "enumlabel" FROM "pg_enum" ORDER BY "enumtypid", "enumsortorder";

-- [13] catalogue | simple | sent 1x | by: types: pg_enum, pg_row
-- result: typname name, v integer
SELECT "typname", CAST("typarray" AS integer) AS "v" FROM "pg_type" WHERE (("oid" IN (<oid:mood>)) AND ("typarray" != 0));

-- [14] catalogue | simple | sent 1x | by: types: pg_enum, pg_row
-- result: typarray oid, oid oid
SELECT "typarray", "oid" FROM "pg_type" WHERE ("typname" = 'mood') LIMIT 1;

-- [15] catalogue | simple | sent 1x | by: types: pg_enum, pg_row
-- result: oid oid
SELECT "oid" FROM "pg_type" WHERE (("typtype" IN ('b', 'e')) AND ("typname" = 'hstore')) LIMIT 1;

-- [16] catalogue | simple | sent 1x | by: types: pg_enum, pg_row
-- result: oid oid, typarray oid
SELECT "oid", "typarray" FROM "pg_type" WHERE ("typname" = 'hstore');

-- [17] catalogue | simple | sent 1x | by: types: pg_enum, pg_row
-- result: oid oid, typrelid oid, typarray oid
SELECT "pg_type"."oid", "typrelid", "typarray" FROM "pg_type" WHERE (("typtype" = 'c') AND ("typname" = 'point2')) LIMIT 1;

-- [18] catalogue | simple | sent 1x | by: types: pg_enum, pg_row
-- result: attname name, atttypid oid
SELECT "attname", (CASE "pg_type"."typbasetype" WHEN 0 THEN "atttypid" ELSE "pg_type"."typbasetype" END) AS "atttypid" FROM "pg_attribute" INNER JOIN "pg_type" ON ("pg_type"."oid" = "pg_attribute"."atttypid") WHERE (("attrelid" = <oid:point2>) AND ("attnum" > 0) AND NOT "attisdropped") ORDER BY "attnum";

-- [19] catalogue | simple | sent 1x | by: types: pg_enum, pg_row
-- result: name name, oid integer, base_oid integer, db_base_type text, db_type text, default text, allow_null boolean, primary_key boolean, attidentity "char", generated boolean
SELECT "pg_attribute"."attname" AS "name", CAST("pg_attribute"."atttypid" AS integer) AS "oid", CAST("basetype"."oid" AS integer) AS "base_oid", format_type("basetype"."oid", "pg_type"."typtypmod") AS "db_base_type", format_type("pg_type"."oid", "pg_attribute"."atttypmod") AS "db_type", pg_get_expr("pg_attrdef"."adbin", "pg_class"."oid") AS "default", NOT "pg_attribute"."attnotnull" AS "allow_null", COALESCE(("pg_attribute"."attnum" = ANY("pg_index"."indkey")), false) AS "primary_key", "pg_attribute"."attidentity", ("pg_attribute"."attgenerated" != '') AS "generated" FROM "pg_class" INNER JOIN "pg_attribute" ON ("pg_attribute"."attrelid" = "pg_class"."oid") INNER JOIN "pg_type" ON ("pg_type"."oid" = "pg_attribute"."atttypid") LEFT OUTER JOIN "pg_type" AS "basetype" ON ("basetype"."oid" = "pg_type"."typbasetype") LEFT OUTER JOIN "pg_attrdef" ON (("pg_attrdef"."adrelid" = "pg_class"."oid") AND ("pg_attrdef"."adnum" = "pg_attribute"."attnum")) LEFT OUTER JOIN "pg_index" ON (("pg_index"."indrelid" = "pg_class"."oid") AND ("pg_index"."indisprimary" IS TRUE)) WHERE (("pg_attribute"."attisdropped" IS FALSE) AND ("pg_attribute"."attnum" > 0) AND ("pg_class"."oid" = CAST(CAST('"t"' AS regclass) AS oid))) ORDER BY "pg_attribute"."attnum";

-- [20] session | simple | sent 2x | by: connect; types: pg_enum, pg_row
-- result: SET
SET standard_conforming_strings = ON;

-- [21] session | simple | sent 2x | by: connect; types: pg_enum, pg_row
-- result: SET
SET client_min_messages = 'WARNING';

-- [22] session | simple | sent 2x | by: connect; types: pg_enum, pg_row
-- result: SET
SET DateStyle = 'ISO';

-- [23] session | simple | sent 2x | by: tables; types: pg_enum, pg_row
-- result: v integer
SELECT CAST(current_setting('server_version_num') AS integer) AS v;

-- [24] session | simple | sent 2x | by: use_cursor; transaction
-- result: BEGIN
BEGIN;

-- [25] session | simple | sent 1x | by: use_cursor
-- result: DECLARE CURSOR
DECLARE "sequel_cursor" NO SCROLL CURSOR WITHOUT HOLD FOR SELECT * FROM "people";

-- [26] session | simple | sent 6x | by: use_cursor
-- result: id text, doc jsonb
FETCH FORWARD 10 FROM "sequel_cursor";

-- [27] session | simple | sent 1x | by: use_cursor
-- result: CLOSE CURSOR
CLOSE "sequel_cursor";

-- [28] session | simple | sent 2x | by: use_cursor; transaction
-- result: COMMIT
COMMIT;

-- [29] session | simple | sent 1x | by: transaction
-- result: SET
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;

-- [30] session | simple | sent 1x | by: transaction
-- result: SAVEPOINT
SAVEPOINT autopoint_1;

-- [31] session | simple | sent 1x | by: transaction
-- result: RELEASE
RELEASE SAVEPOINT autopoint_1;

-- [32] data | simple | sent 1x | by: table_exists?
-- result: nil text
SELECT NULL AS "nil" FROM "people" LIMIT 1;

-- [33] data | simple | sent 1x | by: create_table?
-- result: CREATE TABLE
CREATE TABLE IF NOT EXISTS "people" ("id" text);

-- [34] data | simple | sent 1x | by: dataset
-- result: id text, doc jsonb
SELECT * FROM "people" WHERE ("id" = 'p1') LIMIT 1;

-- [35] data | simple | sent 2x | by: dataset; transaction
-- result: count bigint
SELECT count(*) AS "count" FROM "people" LIMIT 1;

-- [36] data | simple | sent 1x | by: dataset
-- result: id text, doc jsonb
SELECT * FROM "people" LIMIT 0;

-- [37] data | simple | sent 1x | by: insert returning
-- result: id text
INSERT INTO "orders" ("id") VALUES ('sq9') RETURNING "id";

-- [38] data | simple | sent 1x | by: delete
-- result: DELETE n
DELETE FROM "orders" WHERE ("id" = 'sq9');
