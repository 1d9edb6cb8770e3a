-- django: Django 5.2.19 with psycopg
-- 117 statements: 7 catalogue, 20 session, 90 data

-- [1] catalogue | simple | sent 2x | by: connect
-- result: oid oid, typarray oid
SELECT oid, typarray FROM pg_type WHERE typname = 'hstore';

-- [2] catalogue | simple | sent 23x | by: inspectdb; inspectdb --include-views --include-partitions; makemigrations; showmigrations; migrate --plan; … (11 actions)
-- result: relname name, case text, obj_description text
SELECT
                c.relname,
                CASE
                    WHEN c.relispartition THEN 'p'
                    WHEN c.relkind IN ('m', 'v') THEN 'v'
                    ELSE 't'
                END,
                obj_description(c.oid, 'pg_class')
            FROM pg_catalog.pg_class c
            LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v')
                AND n.nspname NOT IN ('pg_catalog', 'pg_toast')
                AND pg_catalog.pg_table_is_visible(c.oid);

-- [3] catalogue | simple | sent 5x | by: inspectdb; inspectdb --include-views --include-partitions
-- result: attname name, relname name, attname name
SELECT a1.attname, c2.relname, a2.attname
            FROM pg_constraint con
            LEFT JOIN pg_class c1 ON con.conrelid = c1.oid
            LEFT JOIN pg_class c2 ON con.confrelid = c2.oid
            LEFT JOIN
                pg_attribute a1 ON c1.oid = a1.attrelid AND a1.attnum = con.conkey[1]
            LEFT JOIN
                pg_attribute a2 ON c2.oid = a2.attrelid AND a2.attnum = con.confkey[1]
            WHERE
                c1.relname = 'orders' AND
                con.contype = 'f' AND
                c1.relnamespace = c2.relnamespace AND
                pg_catalog.pg_table_is_visible(c1.oid);

-- [4] catalogue | simple | sent 13x | by: inspectdb; inspectdb --include-views --include-partitions; introspection get_table_list etc.; schema_editor add_field, alter_field
-- result: conname name, array name[], contype "char", ?column? text, reloptions text[]
SELECT
                c.conname,
                array(
                    SELECT attname
                    FROM unnest(c.conkey) WITH ORDINALITY cols(colid, arridx)
                    JOIN pg_attribute AS ca ON cols.colid = ca.attnum
                    WHERE ca.attrelid = c.conrelid
                    ORDER BY cols.arridx
                ),
                c.contype,
                (SELECT fkc.relname || '.' || fka.attname
                FROM pg_attribute AS fka
                JOIN pg_class AS fkc ON fka.attrelid = fkc.oid
                WHERE fka.attrelid = c.confrelid AND fka.attnum = c.confkey[1]),
                cl.reloptions
            FROM pg_constraint AS c
            JOIN pg_class AS cl ON c.conrelid = cl.oid
            WHERE cl.relname = 'orders' AND pg_catalog.pg_table_is_visible(cl.oid);

-- [5] catalogue | simple | sent 13x | by: inspectdb; inspectdb --include-views --include-partitions; introspection get_table_list etc.; schema_editor add_field, alter_field
-- result: indexname name, array_agg name[], indisunique boolean, indisprimary boolean, array_agg text[], amname name, exprdef text, attoptions text[]
SELECT
                indexname,
                array_agg(attname ORDER BY arridx),
                indisunique,
                indisprimary,
                array_agg(ordering ORDER BY arridx),
                amname,
                exprdef,
                s2.attoptions
            FROM (
                SELECT
                    c2.relname as indexname, idx.*, attr.attname, am.amname,
                    CASE
                        WHEN idx.indexprs IS NOT NULL THEN
                            pg_get_indexdef(idx.indexrelid)
                    END AS exprdef,
                    CASE am.amname
                        WHEN 'btree' THEN
                            CASE (option & 1)
                                WHEN 1 THEN 'DESC' ELSE 'ASC'
                            END
                    END as ordering,
                    c2.reloptions as attoptions
                FROM (
                    SELECT *
                    FROM
                        pg_index i,
                        unnest(i.indkey, i.indoption)
                            WITH ORDINALITY koi(key, option, arridx)
                ) idx
                LEFT JOIN pg_class c ON idx.indrelid = c.oid
                LEFT JOIN pg_class c2 ON idx.indexrelid = c2.oid
                LEFT JOIN pg_am am ON c2.relam = am.oid
                LEFT JOIN
                    pg_attribute attr ON attr.attrelid = c.oid AND attr.attnum = idx.key
                WHERE c.relname = 'orders' AND pg_catalog.pg_table_is_visible(c.oid)
            ) s2
            GROUP BY indexname, indisunique, indisprimary, amname, exprdef, attoptions;

-- [6] catalogue | simple | sent 5x | by: inspectdb; inspectdb --include-views --include-partitions
-- result: column_name name, is_nullable boolean, column_default text, collation name, is_autofield boolean, column_comment text
SELECT
                a.attname AS column_name,
                NOT (a.attnotnull OR (t.typtype = 'd' AND t.typnotnull)) AS is_nullable,
                pg_get_expr(ad.adbin, ad.adrelid) AS column_default,
                CASE WHEN collname = 'default' THEN NULL ELSE collname END AS collation,
                a.attidentity != '' AS is_autofield,
                col_description(a.attrelid, a.attnum) AS column_comment
            FROM pg_attribute a
            LEFT JOIN pg_attrdef ad ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum
            LEFT JOIN pg_collation co ON a.attcollation = co.oid
            JOIN pg_type t ON a.atttypid = t.oid
            JOIN pg_class c ON a.attrelid = c.oid
            JOIN pg_namespace n ON c.relnamespace = n.oid
            WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v')
                AND c.relname = 'orders'
                AND n.nspname NOT IN ('pg_catalog', 'pg_toast')
                AND pg_catalog.pg_table_is_visible(c.oid);

-- [7] catalogue | simple | sent 1x | by: introspection get_table_list etc.
-- result: sequence_name name, colname name
SELECT
                s.relname AS sequence_name,
                a.attname AS colname
            FROM
                pg_class s
                JOIN pg_depend d ON d.objid = s.oid
                    AND d.classid = 'pg_class'::regclass
                    AND d.refclassid = 'pg_class'::regclass
                JOIN pg_attribute a ON d.refobjid = a.attrelid
                    AND d.refobjsubid = a.attnum
                JOIN pg_class tbl ON tbl.oid = d.refobjid
                    AND tbl.relname = 'shop_item'
                    AND pg_catalog.pg_table_is_visible(tbl.oid)
            WHERE
                s.relkind = 'S';

-- [8] session | simple | sent 63x | by: migrate; bulk_create; bulk_create ignore_conflicts; bulk_create update_conflicts; get_or_create; … (14 actions)
-- result: BEGIN
BEGIN;

-- [9] session | simple | sent 63x | by: migrate; bulk_create; bulk_create ignore_conflicts; bulk_create update_conflicts; get_or_create; … (14 actions)
-- result: COMMIT
COMMIT;

-- [10] session | extended | sent 1x | by: iterator()
-- result: DECLARE CURSOR
DECLARE "_django_curs_<n>" NO SCROLL CURSOR WITH HOLD FOR SELECT "orders"."id", "orders"."doc" FROM "orders";

-- [11] session | simple | sent 6x | by: iterator()
-- result: id text, doc jsonb
FETCH FORWARD 50 FROM "_django_curs_<n>";

-- [12] session | simple | sent 10x | by: iterator(); dumpdata; create_test_db / destroy
-- result: CLOSE CURSOR
CLOSE "_django_curs_<n>";

-- [13] session | simple | sent 1x | by: atomic nested
-- result: SAVEPOINT
SAVEPOINT "s<n>_x1";

-- [14] session | simple | sent 1x | by: atomic nested
-- result: RELEASE
RELEASE SAVEPOINT "s<n>_x1";

-- [15] session | simple | sent 1x | by: atomic nested
-- result: SAVEPOINT
SAVEPOINT "s<n>_x2";

-- [16] session | simple | sent 1x | by: atomic nested
-- result: RELEASE
RELEASE SAVEPOINT "s<n>_x2";

-- [17] session | simple | sent 1x | by: check_constraints
-- result: SET CONSTRAINTS
SET CONSTRAINTS ALL IMMEDIATE;

-- [18] session | simple | sent 1x | by: check_constraints
-- result: SET CONSTRAINTS
SET CONSTRAINTS ALL DEFERRED;

-- [19] session | extended | sent 1x | by: dumpdata
-- result: DECLARE CURSOR
DECLARE "_django_curs_<n>" NO SCROLL CURSOR WITH HOLD FOR SELECT "orders"."id", "orders"."doc" FROM "orders" ORDER BY "orders"."id" ASC;

-- [20] session | simple | sent 13x | by: dumpdata; create_test_db / destroy
-- result: id text, doc jsonb
FETCH FORWARD 2000 FROM "_django_curs_<n>";

-- [21] session | extended | sent 2x | by: dumpdata; create_test_db / destroy
-- result: DECLARE CURSOR
DECLARE "_django_curs_<n>" NO SCROLL CURSOR WITH HOLD FOR SELECT "shop_item"."id", "shop_item"."name", "shop_item"."price", "shop_item"."made", "shop_item"."data" FROM "shop_item" ORDER BY "shop_item"."id" ASC;

-- [22] session | extended | sent 2x | by: dumpdata; create_test_db / destroy
-- result: DECLARE CURSOR
DECLARE "_django_curs_<n>" NO SCROLL CURSOR WITH HOLD FOR SELECT "shop_line"."id", "shop_line"."item_id", "shop_line"."n" FROM "shop_line" ORDER BY "shop_line"."id" ASC;

-- [23] session | simple | sent 1x | by: isolation: is_usable / health check
-- result: ?column? integer
SELECT 1;

-- [24] session | extended | sent 1x | by: create_test_db / destroy
-- result: DECLARE CURSOR
DECLARE "_django_curs_<n>" NO SCROLL CURSOR WITH HOLD FOR SELECT "django_content_type"."id", "django_content_type"."app_label", "django_content_type"."model" FROM "django_content_type" ORDER BY "django_content_type"."id" ASC;

-- [25] session | extended | sent 1x | by: create_test_db / destroy
-- result: DECLARE CURSOR
DECLARE "_django_curs_<n>" NO SCROLL CURSOR WITH HOLD FOR SELECT "auth_permission"."id", "auth_permission"."name", "auth_permission"."content_type_id", "auth_permission"."codename" FROM "auth_permission" ORDER BY "auth_permission"."id" ASC;

-- [26] session | extended | sent 1x | by: create_test_db / destroy
-- result: DECLARE CURSOR
DECLARE "_django_curs_<n>" NO SCROLL CURSOR WITH HOLD FOR SELECT "auth_group"."id", "auth_group"."name" FROM "auth_group" ORDER BY "auth_group"."id" ASC;

-- [27] session | extended | sent 1x | by: create_test_db / destroy
-- result: DECLARE CURSOR
DECLARE "_django_curs_<n>" NO SCROLL CURSOR WITH HOLD FOR SELECT "auth_user"."id", "auth_user"."password", "auth_user"."last_login", "auth_user"."is_superuser", "auth_user"."username", "auth_user"."first_name", "auth_user"."last_name", "auth_user"."email", "auth_user"."is_staff", "auth_user"."is_active", "auth_user"."date_joined" FROM "auth_user" ORDER BY "auth_user"."id" ASC;

-- [28] data | simple | sent 2x | by: inspectdb; inspectdb --include-views --include-partitions
-- result: id text, doc jsonb
SELECT * FROM "orders" LIMIT 1;

-- [29] data | simple | sent 2x | by: inspectdb; inspectdb --include-views --include-partitions
-- result: id text, doc jsonb
SELECT * FROM "people" LIMIT 1;

-- [30] data | simple | sent 1x | by: inspectdb --include-views --include-partitions
-- result: id text, name text, age numeric
SELECT * FROM "adults" LIMIT 1;

-- [31] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE TABLE
CREATE TABLE "django_migrations" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "app" varchar(255) NOT NULL, "name" varchar(255) NOT NULL, "applied" timestamp with time zone NOT NULL);

-- [32] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE TABLE
CREATE TABLE "django_content_type" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(100) NOT NULL, "app_label" varchar(100) NOT NULL, "model" varchar(100) NOT NULL);

-- [33] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "django_content_type" ADD CONSTRAINT "django_content_type_app_label_model_76bd3d3b_uniq" UNIQUE ("app_label", "model");

-- [34] data | simple | sent 30x | by: migrate; create_test_db / destroy
-- result: id bigint
INSERT INTO "django_migrations" ("app", "name", "applied") VALUES ('contenttypes', '0001_initial', '<timestamp>'::timestamptz) RETURNING "django_migrations"."id";

-- [35] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "django_content_type" ALTER COLUMN "name" DROP NOT NULL;

-- [36] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "django_content_type" DROP COLUMN "name" CASCADE;

-- [37] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE TABLE
CREATE TABLE "auth_permission" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(50) NOT NULL, "content_type_id" integer NOT NULL, "codename" varchar(100) NOT NULL);

-- [38] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE TABLE
CREATE TABLE "auth_group" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(80) NOT NULL UNIQUE);

-- [39] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE TABLE
CREATE TABLE "auth_group_permissions" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "group_id" integer NOT NULL, "permission_id" integer NOT NULL);

-- [40] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE TABLE
CREATE TABLE "auth_user" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "password" varchar(128) NOT NULL, "last_login" timestamp with time zone NOT NULL, "is_superuser" boolean NOT NULL, "username" varchar(30) NOT NULL UNIQUE, "first_name" varchar(30) NOT NULL, "last_name" varchar(30) NOT NULL, "email" varchar(75) NOT NULL, "is_staff" boolean NOT NULL, "is_active" boolean NOT NULL, "date_joined" timestamp with time zone NOT NULL);

-- [41] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE TABLE
CREATE TABLE "auth_user_groups" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "user_id" integer NOT NULL, "group_id" integer NOT NULL);

-- [42] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE TABLE
CREATE TABLE "auth_user_user_permissions" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "user_id" integer NOT NULL, "permission_id" integer NOT NULL);

-- [43] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_permission" ADD CONSTRAINT "auth_permission_content_type_id_codename_01ab375a_uniq" UNIQUE ("content_type_id", "codename");

-- [44] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_permission" ADD CONSTRAINT "auth_permission_content_type_id_2f476e4b_fk_django_co" FOREIGN KEY ("content_type_id") REFERENCES "django_content_type" ("id") DEFERRABLE INITIALLY DEFERRED;

-- [45] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE INDEX
CREATE INDEX "auth_permission_content_type_id_2f476e4b" ON "auth_permission" ("content_type_id");

-- [46] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE INDEX
CREATE INDEX "auth_group_name_a6ea08ec_like" ON "auth_group" ("name" varchar_pattern_ops);

-- [47] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_group_permissions" ADD CONSTRAINT "auth_group_permissions_group_id_permission_id_0cd325b0_uniq" UNIQUE ("group_id", "permission_id");

-- [48] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_group_permissions" ADD CONSTRAINT "auth_group_permissions_group_id_b120cbf9_fk_auth_group_id" FOREIGN KEY ("group_id") REFERENCES "auth_group" ("id") DEFERRABLE INITIALLY DEFERRED;

-- [49] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_group_permissions" ADD CONSTRAINT "auth_group_permissio_permission_id_84c5c92e_fk_auth_perm" FOREIGN KEY ("permission_id") REFERENCES "auth_permission" ("id") DEFERRABLE INITIALLY DEFERRED;

-- [50] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE INDEX
CREATE INDEX "auth_group_permissions_group_id_b120cbf9" ON "auth_group_permissions" ("group_id");

-- [51] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE INDEX
CREATE INDEX "auth_group_permissions_permission_id_84c5c92e" ON "auth_group_permissions" ("permission_id");

-- [52] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE INDEX
CREATE INDEX "auth_user_username_6821ab7c_like" ON "auth_user" ("username" varchar_pattern_ops);

-- [53] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_user_groups" ADD CONSTRAINT "auth_user_groups_user_id_group_id_94350c0c_uniq" UNIQUE ("user_id", "group_id");

-- [54] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_user_groups" ADD CONSTRAINT "auth_user_groups_user_id_6a12ed8b_fk_auth_user_id" FOREIGN KEY ("user_id") REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED;

-- [55] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_user_groups" ADD CONSTRAINT "auth_user_groups_group_id_97559544_fk_auth_group_id" FOREIGN KEY ("group_id") REFERENCES "auth_group" ("id") DEFERRABLE INITIALLY DEFERRED;

-- [56] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE INDEX
CREATE INDEX "auth_user_groups_user_id_6a12ed8b" ON "auth_user_groups" ("user_id");

-- [57] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE INDEX
CREATE INDEX "auth_user_groups_group_id_97559544" ON "auth_user_groups" ("group_id");

-- [58] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_user_user_permissions" ADD CONSTRAINT "auth_user_user_permissions_user_id_permission_id_14a6b632_uniq" UNIQUE ("user_id", "permission_id");

-- [59] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_user_user_permissions" ADD CONSTRAINT "auth_user_user_permissions_user_id_a95ead1b_fk_auth_user_id" FOREIGN KEY ("user_id") REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED;

-- [60] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_user_user_permissions" ADD CONSTRAINT "auth_user_user_permi_permission_id_1fbb5f2c_fk_auth_perm" FOREIGN KEY ("permission_id") REFERENCES "auth_permission" ("id") DEFERRABLE INITIALLY DEFERRED;

-- [61] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE INDEX
CREATE INDEX "auth_user_user_permissions_user_id_a95ead1b" ON "auth_user_user_permissions" ("user_id");

-- [62] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE INDEX
CREATE INDEX "auth_user_user_permissions_permission_id_1fbb5f2c" ON "auth_user_user_permissions" ("permission_id");

-- [63] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_permission" ALTER COLUMN "name" TYPE varchar(255);

-- [64] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_user" ALTER COLUMN "email" TYPE varchar(254);

-- [65] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_user" ALTER COLUMN "last_login" DROP NOT NULL;

-- [66] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_user" ALTER COLUMN "username" TYPE varchar(150);

-- [67] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_user" ALTER COLUMN "last_name" TYPE varchar(150);

-- [68] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_group" ALTER COLUMN "name" TYPE varchar(150);

-- [69] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "auth_user" ALTER COLUMN "first_name" TYPE varchar(150);

-- [70] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE TABLE
CREATE TABLE "shop_item" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(20) NOT NULL UNIQUE, "price" numeric(8, 2) NULL, "made" timestamp with time zone NOT NULL, "data" jsonb NOT NULL, CONSTRAINT "pos" CHECK ("price" >= 0));

-- [71] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE TABLE
CREATE TABLE "shop_line" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "n" integer NOT NULL, "item_id" bigint NOT NULL);

-- [72] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE INDEX
CREATE INDEX "shop_item_name_c85f6249_like" ON "shop_item" ("name" varchar_pattern_ops);

-- [73] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE INDEX
CREATE INDEX "item_price" ON "shop_item" ("price" DESC);

-- [74] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: ALTER TABLE
ALTER TABLE "shop_line" ADD CONSTRAINT "shop_line_item_id_4b21a017_fk_shop_item_id" FOREIGN KEY ("item_id") REFERENCES "shop_item" ("id") DEFERRABLE INITIALLY DEFERRED;

-- [75] data | simple | sent 2x | by: migrate; create_test_db / destroy
-- result: CREATE INDEX
CREATE INDEX "shop_line_item_id_4b21a017" ON "shop_line" ("item_id");

-- [76] data | simple | sent 6x | by: migrate; migrate zero; create_test_db / destroy
-- result: id bigint, app character varying, name character varying, applied timestamp with time zone
SELECT "django_migrations"."id", "django_migrations"."app", "django_migrations"."name", "django_migrations"."applied" FROM "django_migrations";

-- [77] data | simple | sent 22x | by: migrate; flush; migrate zero; create_test_db / destroy
-- result: id integer, app_label character varying, model character varying
SELECT "django_content_type"."id", "django_content_type"."app_label", "django_content_type"."model" FROM "django_content_type" WHERE "django_content_type"."app_label" = 'contenttypes';

-- [78] data | simple | sent 3x | by: migrate; flush; create_test_db / destroy
-- result: id integer
INSERT INTO "django_content_type" ("app_label", "model") VALUES ('contenttypes', 'contenttype') RETURNING "django_content_type"."id";

-- [79] data | simple | sent 11x | by: migrate; flush; migrate zero; create_test_db / destroy
-- result: id integer, app_label character varying, model character varying
SELECT "django_content_type"."id", "django_content_type"."app_label", "django_content_type"."model" FROM "django_content_type" WHERE ("django_content_type"."app_label" = 'contenttypes' AND "django_content_type"."model" IN ('contenttype'));

-- [80] data | simple | sent 11x | by: migrate; flush; migrate zero; create_test_db / destroy
-- result: content_type integer, codename character varying
SELECT "auth_permission"."content_type_id" AS "content_type", "auth_permission"."codename" AS "codename" FROM "auth_permission" INNER JOIN "django_content_type" ON ("auth_permission"."content_type_id" = "django_content_type"."id") WHERE "auth_permission"."content_type_id" IN (1) ORDER BY "django_content_type"."app_label" ASC, "django_content_type"."model" ASC, 2 ASC;

-- [81] data | simple | sent 9x | by: migrate; flush; create_test_db / destroy
-- result: id integer
INSERT INTO "auth_permission" ("name", "content_type_id", "codename") SELECT * FROM UNNEST(('{"Can add content type","Can change content type","Can delete content type","Can view content type"}')::varchar[], ('{1,1,1,1}'::int2[])::integer[], ('{add_contenttype,change_contenttype,delete_contenttype,view_contenttype}')::varchar[]) RETURNING "auth_permission"."id";

-- [82] data | simple | sent 6x | by: migrate; flush; create_test_db / destroy
-- result: id integer
INSERT INTO "django_content_type" ("app_label", "model") SELECT * FROM UNNEST(('{auth,auth,auth}')::varchar[], ('{permission,group,user}')::varchar[]) RETURNING "django_content_type"."id";

-- [83] data | simple | sent 2x | by: create; get_or_create
-- result: id bigint
INSERT INTO "shop_item" ("name", "price", "made", "data") VALUES ('a', 1.5, '<timestamp>'::timestamptz, '{}'::jsonb) RETURNING "shop_item"."id";

-- [84] data | simple | sent 1x | by: bulk_create
-- result: id bigint
INSERT INTO "shop_item" ("name", "price", "made", "data") SELECT * FROM UNNEST(('{b,c}')::varchar[], ('{NULL,NULL}')::numeric[], ('{"<timestamp>","<timestamp>"}'::timestamptz[])::timestamp with time zone[], ('{"{}","{}"}'::jsonb[])::jsonb[]) RETURNING "shop_item"."id";

-- [85] data | simple | sent 1x | by: bulk_create ignore_conflicts
-- result: INSERT n n
INSERT INTO "shop_item" ("name", "price", "made", "data") SELECT * FROM UNNEST(('{b,c}')::varchar[], ('{NULL,NULL}')::numeric[], ('{"<timestamp>","<timestamp>"}'::timestamptz[])::timestamp with time zone[], ('{"{}","{}"}'::jsonb[])::jsonb[]) ON CONFLICT DO NOTHING;

-- [86] data | simple | sent 1x | by: bulk_create update_conflicts
-- result: id bigint
INSERT INTO "shop_item" ("name", "price", "made", "data") SELECT * FROM UNNEST(('{b,c}')::varchar[], ('{NULL,NULL}')::numeric[], ('{"<timestamp>","<timestamp>"}'::timestamptz[])::timestamp with time zone[], ('{"{}","{}"}'::jsonb[])::jsonb[]) ON CONFLICT("name") DO UPDATE SET "price" = EXCLUDED."price" RETURNING "shop_item"."id";

-- [87] data | simple | sent 2x | by: get; get_or_create
-- result: id bigint, name character varying, price numeric, made timestamp with time zone, data jsonb
SELECT "shop_item"."id", "shop_item"."name", "shop_item"."price", "shop_item"."made", "shop_item"."data" FROM "shop_item" WHERE "shop_item"."name" = 'a' LIMIT 21;

-- [88] data | simple | sent 1x | by: update_or_create
-- result: id bigint, name character varying, price numeric, made timestamp with time zone, data jsonb
SELECT "shop_item"."id", "shop_item"."name", "shop_item"."price", "shop_item"."made", "shop_item"."data" FROM "shop_item" WHERE "shop_item"."name" = 'd' LIMIT 21 FOR UPDATE;

-- [89] data | simple | sent 1x | by: update_or_create
-- result: UPDATE n
UPDATE "shop_item" SET "price" = 3, "made" = '<timestamp>'::timestamptz WHERE "shop_item"."id" = 8;

-- [90] data | simple | sent 1x | by: filter
-- result: id text, doc jsonb
SELECT "orders"."id", "orders"."doc" FROM "orders" WHERE (("orders"."doc" -> 'person') = '"p1"'::jsonb AND "orders"."id"::text LIKE 'o%') LIMIT 5;

-- [91] data | simple | sent 1x | by: exclude/order_by/values
-- result: id text
SELECT "orders"."id" AS "id" FROM "orders" WHERE NOT ("orders"."id" = 'o1') ORDER BY 1 DESC LIMIT 3 OFFSET 2;

-- [92] data | simple | sent 1x | by: jsonfield lookups
-- result: id text, doc jsonb
SELECT "orders"."id", "orders"."doc" FROM "orders" WHERE ("orders"."doc" @> '{"person": "p1"}'::jsonb AND "orders"."doc" ? 'person' AND ("orders"."doc" -> 'total') > '3'::jsonb);

-- [93] data | simple | sent 3x | by: count/exists; atomic nested
-- result: __count bigint
SELECT COUNT(*) AS "__count" FROM "orders";

-- [94] data | simple | sent 1x | by: count/exists
-- result: a integer
SELECT 1 AS "a" FROM "orders" WHERE "orders"."id" = 'o1' LIMIT 1;

-- [95] data | simple | sent 1x | by: aggregate
-- result: doc__person jsonb, n bigint
SELECT ("orders"."doc" -> 'person') AS "doc__person", COUNT(*) AS "n" FROM "orders" GROUP BY 1;

-- [96] data | simple | sent 1x | by: in_bulk
-- result: id text, doc jsonb
SELECT "orders"."id", "orders"."doc" FROM "orders" WHERE "orders"."id" IN ('o1', 'o2');

-- [97] data | simple | sent 2x | by: update; save (update)
-- result: UPDATE n
UPDATE "orders" SET "doc" = '{"a": 1}'::jsonb WHERE "orders"."id" = 'o1';

-- [98] data | simple | sent 2x | by: bulk_update; select_related/prefetch
-- result: id bigint, name character varying, price numeric, made timestamp with time zone, data jsonb
SELECT "shop_item"."id", "shop_item"."name", "shop_item"."price", "shop_item"."made", "shop_item"."data" FROM "shop_item";

-- [99] data | simple | sent 1x | by: bulk_update
-- result: UPDATE n
UPDATE "shop_item" SET "price" = (CASE WHEN ("shop_item"."id" = 1) THEN 1.50 WHEN ("shop_item"."id" = 2) THEN NULL WHEN ("shop_item"."id" = 3) THEN NULL WHEN ("shop_item"."id" = 8) THEN 3.00 ELSE NULL END)::numeric(8, 2) WHERE "shop_item"."id" IN (1, 2, 3, 8);

-- [100] data | simple | sent 1x | by: select_for_update
-- result: id text, doc jsonb
SELECT "orders"."id", "orders"."doc" FROM "orders" WHERE "orders"."id" = 'o1' FOR UPDATE SKIP LOCKED;

-- [101] data | simple | sent 1x | by: select_related/prefetch
-- result: id bigint, item_id bigint, n integer, id bigint, name character varying, price numeric, made timestamp with time zone, data jsonb
SELECT "shop_line"."id", "shop_line"."item_id", "shop_line"."n", "shop_item"."id", "shop_item"."name", "shop_item"."price", "shop_item"."made", "shop_item"."data" FROM "shop_line" INNER JOIN "shop_item" ON ("shop_line"."item_id" = "shop_item"."id");

-- [102] data | simple | sent 1x | by: select_related/prefetch
-- result: id bigint, item_id bigint, n integer
SELECT "shop_line"."id", "shop_line"."item_id", "shop_line"."n" FROM "shop_line" WHERE "shop_line"."item_id" IN (1, 2, 3, 8);

-- [103] data | simple | sent 1x | by: explain
-- result: QUERY PLAN text
EXPLAIN SELECT "orders"."id", "orders"."doc" FROM "orders" WHERE "orders"."id" = 'o1';

-- [104] data | simple | sent 1x | by: search/trigram
-- result: id text, doc jsonb
SELECT "orders"."id", "orders"."doc" FROM "orders" WHERE (UPPER("orders"."id"::text) LIKE UPPER('%a%') AND "orders"."id"::text ~* 'o.*');

-- [105] data | simple | sent 1x | by: delete
-- result: id bigint, name character varying, price numeric, made timestamp with time zone, data jsonb
SELECT "shop_item"."id", "shop_item"."name", "shop_item"."price", "shop_item"."made", "shop_item"."data" FROM "shop_item" WHERE "shop_item"."name" = 'a';

-- [106] data | simple | sent 1x | by: delete
-- result: DELETE n
DELETE FROM "shop_line" WHERE "shop_line"."item_id" IN (1);

-- [107] data | simple | sent 1x | by: delete
-- result: DELETE n
DELETE FROM "shop_item" WHERE "shop_item"."id" IN (1);

-- [108] data | simple | sent 1x | by: flush
-- result: TRUNCATE TABLE
TRUNCATE "auth_permission", "django_content_type", "shop_line", "auth_group", "auth_user", "auth_user_groups", "auth_group_permissions", "shop_item", "auth_user_user_permissions" RESTART IDENTITY;

-- [109] data | simple | sent 1x | by: schema_editor add_field, alter_field
-- result: ALTER TABLE
ALTER TABLE "shop_item" ADD COLUMN "extra" varchar(30) NULL;

-- [110] data | simple | sent 1x | by: schema_editor add_field, alter_field
-- result: ALTER TABLE
ALTER TABLE "shop_item" DROP CONSTRAINT "shop_item_name_key";

-- [111] data | simple | sent 1x | by: schema_editor add_field, alter_field
-- result: ALTER TABLE
ALTER TABLE "shop_item" ALTER COLUMN "name" TYPE varchar(50);

-- [112] data | simple | sent 1x | by: schema_editor add_field, alter_field
-- result: DROP INDEX
DROP INDEX IF EXISTS "shop_item_name_c85f6249_like";

-- [113] data | simple | sent 1x | by: migrate zero
-- result: DROP TABLE
DROP TABLE "shop_line" CASCADE;

-- [114] data | simple | sent 1x | by: migrate zero
-- result: DROP TABLE
DROP TABLE "shop_item" CASCADE;

-- [115] data | simple | sent 1x | by: migrate zero
-- result: DELETE n
DELETE FROM "django_migrations" WHERE ("django_migrations"."app" = 'shop' AND "django_migrations"."name" = '0001_initial');

-- [116] data | simple | sent 1x | by: create_test_db / destroy
-- result: CREATE DATABASE
CREATE DATABASE "test_app";

-- [117] data | simple | sent 1x | by: create_test_db / destroy
-- result: DROP DATABASE
DROP DATABASE "test_app";
