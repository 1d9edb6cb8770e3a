//! Whether a bucket is served, and what its callers learn if it is not.
//!
//! | state | callers learn |
//! |---|---|
//! | open | the answer, while the lease of the other copies holds |
//! | closed: not compared by the coordinators yet, follows another copy, or gives its place away | the reason; nothing was done |
//! | retired: dropped, or another copy leads | the reason; streams end |

use proto::model::bucket::SourceKind;
use proto::model::ids::{NodeId, VbucketId};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::bucket::Bucket;

/// Whether a bucket is served.
pub(super) struct Serving {
    /// Why the bucket is not served yet; `None` if it is.
    closed: Option<Error>,
    /// True if it will never be served.
    is_closed_for_good: bool,
    /// Why the bucket is not served any more.
    retired: Option<Error>,
}

impl Serving {
    /// The only copy of a bucket is not served before it was compared.
    pub fn new(source: SourceKind) -> Self {
        let closed = source.is_only_copy().then(awaits_coordinators);
        Self { closed, is_closed_for_good: false, retired: None }
    }
}

impl Serving {
    pub fn is_retired(&self) -> bool {
        self.retired.is_some()
    }
}

/// The error for callers of a bucket that was not compared yet.
fn awaits_coordinators() -> Error {
    let what = "the projector waits for the coordinators, which know what the bucket must have";
    Error::unavailable(what).with_hint("a majority of the coordinators must run; try again")
}

impl Bucket {
    /// Checks that the bucket is served. The only copy of a bucket is served once the coordinators have compared it with the last
    /// epoch ([`crate::follow`]), and a leading copy while its followers let it.
    pub fn check_open(&self) -> Result<()> {
        if let Some(why) = self.state().serving.closed.clone() {
            return Err(why);
        }
        match self.links.is_alone() || self.links.may_answer(Instant::now()) {
            true => Ok(()),
            false => {
                let name = &self.info.name;
                let what = format!("bucket {name}: its other copies have not answered lately");
                Err(Error::unavailable(what).with_hint("another copy may lead soon; try again"))
            }
        }
    }

    /// True if the bucket is not served yet, or another copy leads.
    pub fn is_closed(&self) -> bool {
        self.state().serving.closed.is_some()
    }

    /// Why the writer takes no mutations; `None` if it does.
    pub(super) fn refusal(&self) -> Option<Error> {
        let state = self.state();
        state.serving.retired.clone().or_else(|| state.serving.closed.clone())
    }

    /// Serves the bucket from now on.
    pub fn open(&self) {
        self.close_with(None, false);
    }

    /// Says why the bucket is not served.
    pub fn refuse(&self, why: Error) {
        self.close_with(Some(why), false);
    }

    /// Takes no mutations and answers nothing from now on: another copy leads.
    pub fn end_leading(&self, why: Error) {
        self.close_with(Some(why), true);
    }

    fn close_with(&self, why: Option<Error>, for_good: bool) {
        let serving = &mut self.state().serving;
        if !serving.is_closed_for_good {
            (serving.closed, serving.is_closed_for_good) = (why, for_good);
        }
        self.wake();
    }

    /// True if this process numbers the mutations of the bucket, or of some of its vbuckets. Another projector leads otherwise.
    pub fn is_leader(&self) -> bool {
        self.info.source.can_span_projectors() || !self.ownership().owned.is_empty()
    }

    /// True if the bucket was dropped, or another copy leads.
    pub fn is_removed(&self) -> bool {
        self.state().serving.retired.is_some()
    }

    /// Marks the bucket as gone from the catalog. Its streams end.
    pub fn remove(&self) {
        self.retire(Error::new(
            ErrorCode::Unknown,
            format!("bucket {} was dropped", self.info.name),
        ));
    }

    /// Ends the bucket as it is: its streams end, and it takes nothing more.
    pub fn retire(&self, why: Error) {
        self.state().serving.retired.get_or_insert(why);
        self.wake();
    }

    /// The error for users of a bucket that is gone.
    pub fn removed_error(&self) -> Error {
        let retired = self.state().serving.retired.clone();
        retired.unwrap_or_else(|| Error::internal("the bucket is still served"))
    }

    /// The error for callers of a bucket that another projector leads; nothing was done.
    pub fn led_elsewhere(&self, leader: NodeId) -> Error {
        let what = format!("bucket {}: projector {leader} leads it, or soon will", self.info.name);
        Error::new(ErrorCode::NotOwner, what).with_hint("try again")
    }

    /// The error for callers whose writes may exist or not.
    pub fn in_doubt(&self) -> Error {
        let what = format!(
            "bucket {}: another copy leads now; whether the write was made is unknown",
            self.info.name
        );
        Error::new(ErrorCode::Interrupted, what)
            .with_hint("look whether the write is there before you repeat it")
    }

    /// The error for a vbucket that another projector owns, or soon will.
    pub fn not_owned(&self, vbucket: VbucketId) -> Error {
        let what = format!(
            "vbucket {vbucket} of bucket {} is not owned by this projector",
            self.info.name
        );
        Error::new(ErrorCode::NotOwner, what)
            .with_hint("retry: another projector owns the vbucket, or soon will")
    }
}
