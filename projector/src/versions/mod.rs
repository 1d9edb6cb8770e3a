//! The versions of data sets: this projector's part in them ([`proto::model::data_set`] has the design).
//!
//! ```text
//!  catalog ─▶ plan (what is to be done for each version)
//!              │ load                      │ tell                   │ lost
//!  files ─▶ reader ─▶ store ─▶ contents ─▶ whole ─▶ PartitionsLoaded    PartitionsLost
//! ```
//!
//! **A load** reads the files once, one after another, and stores the rows of this projector's partitions. The number of a row within its
//! partition is its seqno; of rows with one id the last one counts. While a piece of rows is stored the next one is read, both with low
//! priority. Then one pass over what is stored computes what each partition contains. If another projector has told that a partition
//! contains something else, the files are not the same, and the version fails. Otherwise the partitions become whole
//! ([`crate::source::files`]), and the coordinators learn that this projector has them.
//!
//! A process that ends in the midst leaves nothing that counts: the next one removes what is there of partitions that are not whole, and
//! begins anew. Whole ones stay, and are told if the catalog does not list them.
//!
//! **What is wrong with the files** ends the version, with an error that names file and place. **What is wrong with the own disk** is no
//! fault of the version: the load is repeated. A version that is current already does not end because a late holder cannot load it.

mod anew;
mod contents;
pub mod files;
mod load;
mod plan;
mod propose;
mod reader;
mod tasks;

pub use tasks::load_versions;
