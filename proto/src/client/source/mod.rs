//! A bucket's projectors as one source.
//!
//! An embedded bucket is at one projector, and then [`source_of`] is that projector. The vbuckets of a pushed one may
//! be spread, and on their way ([`crate::model::homes`]): then it is a [`Source`], which asks all of them and puts their answers together:
//! coordinators, indexers and routers follow a bucket without knowing how many projectors it has.
//!
//! What the caller's catalog says of the homes may be old, and so may what a projector knows. So every answer
//! tells which vbuckets it is of, and an answer that is put together is of each vbucket once, from its home, or it is
//! refused (`Unavailable`) and asked for again a moment later.

mod joined;
mod merge;
mod stream;

pub use joined::{Source, source_of};
pub use merge::Merge;
