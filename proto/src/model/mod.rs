//! The data model of the cluster: identifiers, positions in a source's history, definitions, and placement.
//!
//! The types are plain data, with functions that depend only on this data. No module here depends on messages or
//! services.

pub mod assignment;
pub mod bucket;
pub mod catalog;
pub mod commits;
pub mod committed;
pub mod copies;
pub mod cut;
pub mod data_set;
pub mod history;
pub mod identity;
pub mod ids;
pub mod index;
pub mod joint;
pub mod left_out;
pub mod moment;
pub mod moves;
pub mod node;
pub mod open_commit;
pub mod pushed_commit;
pub mod range_split;
pub mod rollback;
pub mod topology;
pub mod users;
