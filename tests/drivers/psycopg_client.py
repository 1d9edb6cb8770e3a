"""psycopg 3: SCRAM with channel binding over verified TLS."""
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
try:
    psycopg.connect(user="ada", password="wrong", **at)
    raise SystemExit("a wrong password was taken")
except psycopg.OperationalError as error:
    assert "password" in str(error), error
