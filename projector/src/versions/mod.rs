//! The loads of data set versions on this projector ([`proto::model::data_set`] has the design).
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
//! several rows, the last row is kept. Sorted sheets of rows become files of the document table
//! without a log ([`store_rows`]): a partition is not readable before it is whole, so no replay is
//! needed. If another projector has reported other contents of a partition than this one has found
//! ([`contents`]), the files are not the same, and the version fails. Otherwise the partitions
//! become whole ([`crate::source::files`]), and this projector reports them to the coordinators.
//!
//! If a process ends during a load, the next one removes the documents of partial partitions, and
//! starts again. Whole partitions are kept, and are reported if the catalog does not list them.
//!
//! **An error in the files** ends the version, with a message that names file and place. After **an
//! error of this projector's disk** the load is repeated. A version that is current already does
//! not end because a later holder cannot load it.

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
