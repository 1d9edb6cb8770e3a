//! Loads the versions of data sets on this projector ([`proto::model::data_set`] has the design).
//!
//! ```text
//!  catalog ─▶ plan (what is to be done for each version)
//!              │ load                      │ tell                   │ lost
//!  files ─▶ parts ─▶ batches ─▶ sheets ─▶ contents ─▶ whole ─▶ PartitionsLoaded    PartitionsLost
//! ```
//!
//! **A load** reads the files once, and stores the rows of this projector's partitions. Parts of
//! the files are read in parallel, with low priority ([`reader`]); their rows are numbered in the
//! order of the files. The number of a row within its partition is its seqno; if an id occurs in
//! several rows, the last row is kept. Sorted blocks of rows, named sheets, become files of the
//! document table ([`store_rows`]). The rows are in no log: a partition is not readable before it
//! is *whole* (completely stored), so no replay is needed. If another projector has reported
//! other contents of a partition than this one has found ([`contents`]), the projectors have
//! different files, and the version fails. Otherwise the partitions become whole
//! ([`crate::source::files`]), and this projector reports them to the coordinators.
//!
//! If a process ends during a load, the next one removes the documents of partial partitions, and
//! starts again. Whole partitions are kept, and are reported if the catalog does not list them.
//!
//! **An error in the files** ends the version, with a message that names the file and the place
//! in it. After **an error of this projector's disk** the load is repeated. A version that is
//! current already is not ended by a further projector that cannot load it.

mod attempt;
mod contents;
pub mod files;
mod load;
mod plan;
mod propose;
mod reader;
mod recount;
mod recreation;
mod sheet;
mod store_rows;
mod tasks;

pub use tasks::load_versions;
