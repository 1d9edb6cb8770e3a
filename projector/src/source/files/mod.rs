//! Buckets of kind *files*: the versions of data sets, whose documents come from files
//! ([`proto::model::data_set`]), and the data sets themselves, which have no documents.
//!
//! A partition of a version is *whole* when all its rows are stored. A whole partition has its
//! branch, which all holders share, and its purge point and end are its number of rows: it has no
//! log. A partition that is not whole has no branch, and is not visible. So a projector serves only
//! the whole partitions that the catalog assigns to it; further partitions are served when they are
//! loaded. A projector keeps whole partitions that others own, and reads documents of them too: all
//! holders have equal documents.
//!
//! `crate::versions` reads the files.

mod source;
mod storing;

pub use source::FromFiles;
