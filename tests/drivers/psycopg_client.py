"""psycopg 3: SCRAM with channel binding over verified TLS; a batch that fails keeps nothing."""
import os
import psycopg

at = dict(host="127.0.0.1", port=os.environ["PORT"], dbname="x", sslmode="verify-full", sslrootcert=os.environ["CA"])
with psycopg.connect(user="ada", password=os.environ["ADA"], channel_binding="require", autocommit=True, **at) as ada:
    rows = ada.execute("SELECT id, n FROM by_n WHERE n >= %s AND n < %s ORDER BY n", (2, 4)).fetchall()
    assert rows == [("2", 2), ("3", 3)], rows
    try:
        ada.execute("DELETE FROM docs WHERE id = '1'")
        raise SystemExit("a user without the privilege has deleted")
    except psycopg.errors.InsufficientPrivilege:
        pass
INSERT = "INSERT INTO batches (id, doc) VALUES (%s, %s)"
with psycopg.connect(user="ada", password=os.environ["ADA"], autocommit=True, **at) as ada:
    with ada.cursor() as cursor:
        cursor.executemany(INSERT, [("psycopg1", "{}"), ("psycopg2", "{}")])
        assert cursor.rowcount == 2, cursor.rowcount
        try:
            cursor.executemany(INSERT, [("psycopg3", "{}"), ("psycopg1", "{}")])
            raise SystemExit("an id was inserted twice")
        except psycopg.errors.UniqueViolation:
            pass
    with ada.pipeline():
        ada.execute(INSERT, ("psycopg4", "{}"))
        ada.execute(INSERT, ("psycopg5", "{}"))
    try:
        with ada.pipeline():
            ada.execute(INSERT, ("psycopg6", "{}"))
            ada.execute(INSERT, ("psycopg4", "{}"))
        raise SystemExit("an id was inserted twice")
    except psycopg.errors.UniqueViolation:
        pass
    ids = [f"psycopg{n}" for n in range(1, 7)]
    kept = [id for id in ids if ada.execute("SELECT id FROM batches WHERE id = %s", (id,)).fetchone()]
    assert kept == ["psycopg1", "psycopg2", "psycopg4", "psycopg5"], kept
try:
    psycopg.connect(user="ada", password="wrong", **at)
    raise SystemExit("a wrong password was taken")
except psycopg.OperationalError as error:
    assert "password" in str(error), error
