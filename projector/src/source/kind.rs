//! The interface of the kinds of sources, which differ in the party that numbers the mutations of a
//! bucket.
//!
//! A further kind implements [`Source`] in a separate directory and gets a line in
//! [`super::registry`].

use proto::Result;
use proto::env::Random;
use proto::model::bucket::BucketInfo;
use proto::model::cut::Cut;
use proto::model::history::Branches;

/// The kinds of calls that deliver mutations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCall {
    /// Documents that the projector numbers.
    Documents,
    /// Mutations that their producer has numbered.
    Mutations,
}

/// The party that numbers the mutations of a bucket.
pub trait Source: Send + Sync {
    /// The branches with which a projector begins to serve vbuckets that end at a cut: `branches` are those of the history at that cut.
    fn begin(&self, branches: Vec<Branches>, ends: &Cut, random: &dyn Random) -> Vec<Branches>;

    /// Returns an error unless a bucket accepts this kind of call. The error names the right call.
    fn check_call(&self, bucket: &BucketInfo, call: WriteCall) -> Result<()>;

    /// True if the owner of a vbucket with these branches can serve it.
    fn can_serve(&self, _branches: &Branches) -> bool {
        true
    }

    /// Handles the confirmation that all mutations up to a cut are durable on all copies: no
    /// indexer will request them again.
    fn confirm(&self, bucket: &BucketInfo, cut: &Cut);
}
