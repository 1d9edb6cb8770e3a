//! The versions of data sets: this projector's part in them ([`proto::model::data_set`] has the design).
//!
//! ```text
//!  catalog ─▶ plan (what is to be done for each version)
//!              │ load                      │ tell                   │ lost
//!  files ─▶ parts ─▶ batches ─▶ sheets ─▶ contents ─▶ whole ─▶ PartitionsLoaded    PartitionsLost
//! ```
//!
//! **A load** reads the files once, and stores the rows of this projector's partitions. Parts of the files are read side by side, with low
//! priority ([`reader`]); their rows are numbered in the order of the files. The number of a row within its partition is its seqno; of rows
//! with one id the last one counts. Sorted sheets of rows become files of the document table without a log ([`store_rows`]): nothing counts
//! before the partition is whole, so nothing must be replayed. If another projector has reported other contents of a partition than this
//! one has found ([`contents`]), the files are not the same, and the version fails. Otherwise the partitions become whole
//! ([`crate::source::files`]), and the coordinators learn that this projector has them.
//!
//! A process that ends during a load leaves nothing that counts: the next one removes the documents of partial partitions, and starts
//! again. Whole partitions stay, and are reported if the catalog does not list them.
//!
//! **What is wrong with the files** ends the version, with an error that names file and place. **What is wrong with the own disk** is no
//! fault of the version: the load is repeated. A version that is current already does not end because a late holder cannot load it.

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
