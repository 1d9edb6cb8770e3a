//! PostgreSQL's catalogue over Sextant's definitions, and the engine that answers statements about it.
//!
//! Clients read the catalogue (`pg_catalog`, `information_schema`) with the whole of SQL: joins,
//! correlated subqueries, arrays, set-returning functions. This crate answers such statements,
//! and those that read no relation at all (`SELECT version()`, `VALUES (1), (2)`), in three steps:
//!
//! 1. `analyse` resolves the names, functions, operators and types of a parsed statement, by the
//!    rules of PostgreSQL's manual (chapter "Type Conversion"), and makes a typed plan ([`plan`]).
//! 2. `relations` gives the rows of the relations, as a function of the definitions ([`facts`])
//!    that the session's user may see.
//! 3. `execute` runs the plan within limits of time and memory.
//!
//! No session uses the crate yet. It refuses functions of dates and times by name.
//!
//! **Why an engine of its own, and not SQLite.** A prototype over SQLite answered 881 of 887
//! recorded statements. Both ways need the same analyser (a statement is described before it
//! runs) and the same functions. What SQLite saves is the joins, the grouping and the recursion;
//! what it costs is a translation to its text, arrays and records as JSON, results whose type
//! only the analyser knows, division by zero and second rows of a subquery that are no errors, a
//! memory limit for the whole process, a copy of the relations for each thread, and a minute of
//! C in each first build. The typed executor has 2,500 lines, some 900 more than that translation
//! was estimated to take; it is exact in types and errors, and shares the rows of one snapshot.
//! Documents are not read here: their scans have a planner of their own.
//!
//! **Values** are [`proto::value::Value`]; the static [`types::Type`] of an expression says how
//! to read one:
//!
//! | type | value |
//! |---|---|
//! | bool | `Bool` |
//! | int2, int4, int8, oid, xid, cid, `reg…` | `Number`, an integer (an OID for `reg…`) |
//! | float4, float8, numeric | `Number` |
//! | text, name, varchar, bpchar, "char", json, jsonb, xml, aclitem, inet, pg_node_tree, unknown, cstring | `String` |
//! | arrays, int2vector, oidvector | `Array` of the element's values; several dimensions as arrays of arrays |
//! | record, row types | `Array` of the fields' values |
//! | SQL's NULL of any type | `Null`; `Missing` never occurs |

pub mod analyse;
pub mod data;
pub mod error;
pub mod execute;
pub mod facts;
pub mod functions;
pub mod limits;
pub mod plan;
pub mod relations;
pub mod session;
pub mod types;
mod views;
