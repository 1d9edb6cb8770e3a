//! The interface that each kind of source implements. The kinds differ in what numbers the
//! mutations of a bucket: the projector, a producer, or the files of a data set.
//!
//! A further kind implements [`Source`] in a separate directory and gets a line in
//! [`super::registry`].

use proto::Result;
use proto::env::Random;
use proto::model::bucket::BucketInfo;
use proto::model::cut::Cut;
use proto::model::history::Branches;

/// The kinds of calls that deliver mutations to a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCall {
    /// Documents that the projector numbers.
    Documents,
    /// Mutations that their producer has numbered.
    Mutations,
}

/// A kind of source: determines what numbers the mutations of a bucket.
pub trait Source: Send + Sync {
    /// Returns the branches with which a projector begins to serve vbuckets that end at the cut
    /// `ends`. `branches` are the branches of the history up to that cut.
    fn begin(&self, branches: Vec<Branches>, ends: &Cut, random: &dyn Random) -> Vec<Branches>;

    /// Returns an error unless a bucket of this kind accepts this kind of call. The error names
    /// the right call.
    fn check_call(&self, bucket: &BucketInfo, call: WriteCall) -> Result<()>;

    /// Returns true if a vbucket with these branches can be served by its owner.
    fn can_serve(&self, _branches: &Branches) -> bool {
        true
    }

    /// Handles the confirmation that all mutations up to a cut are durable on all copies of the
    /// bucket's indexes: no indexer will request them again.
    fn confirm(&self, bucket: &BucketInfo, cut: &Cut);
}
