-- libpq: libpq of psycopg-binary: connection options
-- 2 statements: 1 session, 1 data

-- [1] session | simple | sent 2x | by: PQchangePassword
-- result: password_encryption text
show password_encryption;

-- [2] data | simple | sent 2x | by: PQchangePassword
-- result: ALTER ROLE
ALTER USER "reader" PASSWORD 'SCRAM-SHA-256$<verifier>';
