//! The projectors of a bucket as one source.
//!
//! The vbuckets of an embedded bucket are at one projector, which is then the source
//! ([`source_of`]). The vbuckets of a pushed bucket may be spread over several projectors, and some
//! may be in transfer ([`crate::model::assignment`]): the source is then a [`Source`], which
//! queries all of them and combines their answers. Coordinators, indexers and routers follow a
//! bucket without knowing how many projectors it has.
//!
//! The documents of a version of a data set are at several projectors, of which any may answer
//! ([`documents_of_version`]).
//!
//! The catalogs of the caller and of a projector may be out of date. Every answer therefore names
//! the vbuckets that it covers. A combined answer covers each vbucket exactly once, from its owner;
//! otherwise the call fails with `Unavailable`, and the caller retries.

mod merge;
mod projectors;
mod stream;
mod version_source;

pub use merge::Merge;
pub use projectors::{Source, source_of};
pub use version_source::documents_of_version;
