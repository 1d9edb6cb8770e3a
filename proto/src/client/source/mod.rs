//! Reads and writes a bucket whose vbuckets are spread over several projectors, as if there were
//! one.
//!
//! The vbuckets of an embedded bucket are at one projector, whose client is used directly
//! ([`source_of`]). The vbuckets of a pushed bucket may be spread over several projectors, and
//! some may be in transfer ([`crate::model::assignment`]). For these, [`Source`] sends each
//! request to all of them and combines their answers. Coordinators, indexers and routers need not
//! know how many projectors a bucket has.
//!
//! The documents of a version of a data set are at several projectors, of which any may answer
//! ([`documents_of_version`]).
//!
//! The catalogs of the caller and of a projector may be out of date. Every answer therefore names
//! the vbuckets that it covers. A combined answer covers each vbucket exactly once, from its
//! owner; otherwise the call fails with `Unavailable`, and the caller retries.

mod merge;
mod projectors;
mod stream;
mod version_source;

pub use merge::Merge;
pub use projectors::{Source, source_of};
pub use version_source::documents_of_version;
