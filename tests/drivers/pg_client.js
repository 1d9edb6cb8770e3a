// node-postgres: SCRAM over verified TLS.
const fs = require("fs");
const assert = require("assert");
const { Client } = require("pg");

const at = { host: "127.0.0.1", port: process.env.PORT, database: "x", user: "ada", ssl: { ca: fs.readFileSync(process.env.CA) } };

(async () => {
  const ada = new Client({ ...at, password: process.env.ADA });
  await ada.connect();
  const { rows } = await ada.query("SELECT id, n FROM by_n WHERE n >= $1 AND n < $2 ORDER BY n", [2, 4]);
  assert.deepStrictEqual(rows, [{ id: "2", n: "2" }, { id: "3", n: "3" }]);
  await assert.rejects(ada.query("CREATE USER eve PASSWORD 'secret'"), { code: "42501" });
  await ada.end();
  const wrong = new Client({ ...at, password: "wrong" });
  await assert.rejects(wrong.connect(), { code: "28P01" });
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
