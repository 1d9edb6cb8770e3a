//! The binary `sextant` and what joins the services to a cluster: the SQL front end, the PostgreSQL
//! wire, roles and wiring.

pub mod pg;
pub mod sql;
