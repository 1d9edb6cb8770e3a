//! The benchmark of the real binary over SQL, and of PostgreSQL on the same machine in the same
//! run.
//!
//! | module | contents |
//! |---|---|
//! | [`peers`] | the servers: how they are started, and their statements |
//! | [`documents`] | the documents and the rows that a range of them has |
//! | [`load`] | clients: prepared statements over several connections on one thread |
//! | [`answers`] | comparisons of the servers' answers |
//! | [`copy_out`] | a client of COPY … TO STDOUT that costs little |
//! | [`mod@bench`] | the state of a run, and the rounds in which the servers take turns |
//! | [`measure`] | the measurements |
//! | [`figures`], [`spread`], [`cpu`] | the values of one round and of all rounds |
//! | [`report`] | the table, the Markdown file and its plots |
//! | [`run`], [`settings`], [`machine`] | one run from its flags to its figures |
//!
//! Each figure is measured in several rounds. The servers take turns within a round, so that a
//! change of the machine affects all of them, and a ratio is formed round by round.
#![allow(
    clippy::disallowed_methods,
    reason = "a tool that runs real servers and measures real time"
)]

pub mod answers;
pub mod bench;
pub mod copy_out;
pub mod cpu;
pub mod documents;
pub mod figures;
pub mod load;
pub mod machine;
pub mod measure;
pub mod peers;
pub mod report;
pub mod run;
pub mod settings;
pub mod spread;
