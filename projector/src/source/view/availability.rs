//! The states that determine whether a bucket is served, and the errors for callers of a bucket
//! that is not served.
//!
//! | state | callers get |
//! |---|---|
//! | open | the answer, while the lease of the other copies is valid |
//! | closed: not compared by the coordinators yet, or follows another copy | the reason; nothing was done |
//! | paused: hands its leadership over | the reason; nothing was done |
//! | ended: another copy leads, or this one will in a moment | the reason; nothing was done |
//! | retired: dropped, or replaced | the reason; streams end |

use proto::model::ids::{NodeId, VbucketId};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::bucket::Bucket;
use super::serving::Stage;

impl Bucket {
    /// Returns an error unless the bucket is served now. The only copy of a bucket is served once
    /// the coordinators have compared it with the last epoch ([`crate::follow`]). A leading copy
    /// is served while its followers have granted it a lease.
    pub fn check_open(&self) -> Result<()> {
        if let Some(why) = self.state().serving.refusal() {
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

    /// Returns true if the coordinators have not allowed this bucket to be served yet.
    pub fn is_closed(&self) -> bool {
        matches!(self.state().serving.stage, Stage::Closed(_))
    }

    /// Returns true if this projector leads the bucket and has begun its branches. The projector
    /// may be about to hand leadership over.
    pub fn is_led(&self) -> bool {
        let state = self.state();
        !state.serving.is_retired() && matches!(state.serving.stage, Stage::Open | Stage::Paused(_))
    }

    /// Returns true if this bucket object will be replaced, because another copy leads.
    pub fn has_ended(&self) -> bool {
        let state = self.state();
        state.serving.is_retired() || matches!(state.serving.stage, Stage::Ended(_))
    }

    /// Returns the reason why the writer accepts no mutations; `None` if it accepts them.
    pub(in crate::source) fn refusal(&self) -> Option<Error> {
        let state = self.state();
        state.serving.retired.clone().or_else(|| state.serving.refusal())
    }

    /// Serves the bucket from now on. Returns false, and does not serve it, if another copy
    /// leads.
    pub fn open(&self) -> bool {
        self.change_stage(|stage| match stage {
            Stage::Closed(_) | Stage::Open => Some(Stage::Open),
            Stage::Paused(_) | Stage::Ended(_) => None,
        })
    }

    /// Sets the error for callers of a bucket that is not served yet.
    pub fn set_refusal(&self, why: Error) {
        self.change_stage(|stage| matches!(stage, Stage::Closed(_)).then_some(Stage::Closed(why)));
    }

    /// Refuses mutations and reads with the error `why` until [`Self::resume`]. Returns false if
    /// the bucket is not served.
    pub fn pause(&self, why: Error) -> bool {
        self.change_stage(|stage| matches!(stage, Stage::Open).then_some(Stage::Paused(why)))
    }

    /// Ends a pause that [`Self::pause`] began.
    pub fn resume(&self) {
        self.change_stage(|stage| matches!(stage, Stage::Paused(_)).then_some(Stage::Open));
    }

    /// Refuses mutations and reads with the error `why` from now on, because another copy leads.
    pub fn end_leading(&self, why: Error) {
        self.change_stage(|_| Some(Stage::Ended(why)));
    }

    fn change_stage(&self, next: impl FnOnce(&Stage) -> Option<Stage>) -> bool {
        let next = {
            let mut state = self.state();
            let next = next(&state.serving.stage);
            let is_changed = next.is_some();
            if let Some(next) = next {
                state.serving.stage = next;
            }
            is_changed
        };
        self.wake();
        next
    }

    /// Returns true if this process numbers the mutations of the bucket, or of some of its
    /// vbuckets; false if another projector leads.
    pub fn is_leader(&self) -> bool {
        self.info.source.can_span_projectors() || !self.ownership().owned.is_empty()
    }

    /// Returns true if the bucket was dropped, or its object was replaced because another copy
    /// leads.
    pub fn is_removed(&self) -> bool {
        self.state().serving.retired.is_some()
    }

    /// Marks the bucket as removed from the catalog, and ends its streams.
    pub fn remove(&self) {
        self.retire(Error::new(
            ErrorCode::Unknown,
            format!("bucket {} was dropped", self.info.name),
        ));
    }

    /// Retires this bucket object: its streams end, and its callers get the error `why`.
    pub fn retire(&self, why: Error) {
        self.state().serving.retired.get_or_insert(why);
        self.transactions.close();
        self.wake();
    }

    /// Returns the error for callers of a removed bucket.
    pub fn removed_error(&self) -> Error {
        let retired = self.state().serving.retired.clone();
        retired.unwrap_or_else(|| Error::internal("the bucket is still served"))
    }

    /// Returns the error for a call that had no effect because another projector leads the
    /// bucket.
    pub fn led_elsewhere_error(&self, leader: NodeId) -> Error {
        let what = format!("bucket {}: projector {leader} leads it, or soon will", self.info.name);
        Error::new(ErrorCode::NotOwner, what).with_hint("try again")
    }

    /// Returns the error for callers whose writes may or may not be durable.
    pub fn in_doubt_error(&self) -> Error {
        let what = format!(
            "bucket {}: another copy leads now; whether the write was made is unknown",
            self.info.name
        );
        Error::new(ErrorCode::Interrupted, what)
            .with_hint("look whether the write is there before you repeat it")
    }

    /// Returns the error for writes for which no memory could be reserved, because the other
    /// copies have not confirmed earlier writes.
    pub fn no_memory_error(&self) -> Error {
        let name = &self.info.name;
        let what = format!(
            "bucket {name}: its other copies do not confirm the writes that wait already; nothing was written"
        );
        Error::unavailable(what).with_hint("another copy may lead soon; try again")
    }

    /// Returns the error for writes that the other copies have not confirmed in time.
    pub fn unconfirmed_error(&self) -> Error {
        let name = &self.info.name;
        let what = format!(
            "bucket {name}: its other copies have not confirmed the write in time; whether it was made is unknown"
        );
        Error::new(ErrorCode::Interrupted, what)
            .with_hint("look whether the write is there before you repeat it")
    }

    /// Returns the error for a vbucket that another projector owns, or will own soon.
    pub fn not_owned(&self, vbucket: VbucketId) -> Error {
        let what = format!(
            "vbucket {vbucket} of bucket {} is not owned by this projector",
            self.info.name
        );
        Error::new(ErrorCode::NotOwner, what)
            .with_hint("retry: another projector owns the vbucket, or soon will")
    }
}
