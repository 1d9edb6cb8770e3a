"""asyncpg: SCRAM over verified TLS, and prepared statements with binary parameters; a batch that fails keeps nothing."""
import asyncio
import os
import ssl
import asyncpg


async def main():
    at = dict(host="127.0.0.1", port=int(os.environ["PORT"]), database="x", ssl=ssl.create_default_context(cafile=os.environ["CA"]))
    ada = await asyncpg.connect(user="ada", password=os.environ["ADA"], **at)
    rows = await ada.fetch("SELECT id, n FROM by_n WHERE n >= $1 AND n < $2 ORDER BY n", 2, 4)
    assert [tuple(row) for row in rows] == [("2", 2), ("3", 3)], rows
    try:
        await ada.execute("DROP BUCKET docs")
        raise SystemExit("a user without the privilege has dropped a bucket")
    except asyncpg.InsufficientPrivilegeError:
        pass
    insert = "INSERT INTO batches (id, doc) VALUES ($1, $2)"
    await ada.executemany(insert, [("asyncpg1", "{}"), ("asyncpg2", "{}")])
    try:
        await ada.executemany(insert, [("asyncpg3", "{}"), ("asyncpg1", "{}")])
        raise SystemExit("an id was inserted twice")
    except asyncpg.UniqueViolationError:
        pass
    kept = [n for n in (1, 2, 3) if await ada.fetchrow("SELECT id FROM batches WHERE id = $1", f"asyncpg{n}")]
    assert kept == [1, 2], kept
    await ada.close()
    try:
        await asyncpg.connect(user="ada", password="wrong", **at)
        raise SystemExit("a wrong password was taken")
    except asyncpg.InvalidPasswordError:
        pass


asyncio.run(main())
