//! Buckets of kind *files*: the versions of data sets, whose documents come from files
//! ([`proto::model::data_set`]), and the data sets themselves, which have no documents.
//!
//! A partition of a version is *whole* when all its rows are stored. A whole partition has a
//! branch, which is the same on all projectors that store it. It has no log: its purge point and
//! its end are both its number of rows. A partition that is not whole has no branch, and is not
//! visible. So a projector serves only the whole partitions that the catalog assigns to it, and
//! further ones when they are loaded. A projector also keeps whole partitions that other
//! projectors own, and reads documents from them: the documents are equal on all projectors.
//!
//! `crate::versions` reads the files.

mod source;
mod storing;

pub use source::FromFiles;
