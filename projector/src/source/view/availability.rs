//! The serving state of a bucket, and the errors for callers of a bucket that is not served.
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
    /// Returns an error unless the bucket is served. The only copy of a bucket is served once the
    /// coordinators have compared it with the last epoch ([`crate::follow`]), and a leading copy
    /// while it has a lease of its followers.
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

    /// True if the coordinators have not allowed the bucket to be served yet.
    pub fn is_closed(&self) -> bool {
        matches!(self.state().serving.stage, Stage::Closed(_))
    }

    /// Returns true if this projector leads the bucket, with its branches begun; it may be about to
    /// hand its leadership over.
    pub fn is_led(&self) -> bool {
        let state = self.state();
        !state.serving.is_retired() && matches!(state.serving.stage, Stage::Open | Stage::Paused(_))
    }

    /// Returns true if another copy leads, and this bucket object will be replaced.
    pub fn has_ended(&self) -> bool {
        let state = self.state();
        state.serving.is_retired() || matches!(state.serving.stage, Stage::Ended(_))
    }

    /// Returns the reason why the writer accepts no mutations; `None` if it does.
    pub(in crate::source) fn refusal(&self) -> Option<Error> {
        let state = self.state();
        state.serving.retired.clone().or_else(|| state.serving.refusal())
    }

    /// Serves the bucket from now on. Returns false if another copy leads.
    pub fn open(&self) -> bool {
        self.change_stage(|stage| match stage {
            Stage::Closed(_) | Stage::Open => Some(Stage::Open),
            Stage::Paused(_) | Stage::Ended(_) => None,
        })
    }

    /// Sets the error for callers of a bucket that is not served yet.
    pub fn refuse(&self, why: Error) {
        self.change_stage(|stage| matches!(stage, Stage::Closed(_)).then_some(Stage::Closed(why)));
    }

    /// Refuses mutations and reads until [`Self::resume`]. Returns false if the bucket is not open.
    pub fn pause(&self, why: Error) -> bool {
        self.change_stage(|stage| matches!(stage, Stage::Open).then_some(Stage::Paused(why)))
    }

    /// Ends a pause.
    pub fn resume(&self) {
        self.change_stage(|stage| matches!(stage, Stage::Paused(_)).then_some(Stage::Open));
    }

    /// Refuses mutations and reads from now on, because another copy leads.
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

    /// True if the bucket was dropped, or another copy leads.
    pub fn is_removed(&self) -> bool {
        self.state().serving.retired.is_some()
    }

    /// Marks the bucket as removed from the catalog. Its streams end.
    pub fn remove(&self) {
        self.retire(Error::new(
            ErrorCode::Unknown,
            format!("bucket {} was dropped", self.info.name),
        ));
    }

    /// Ends the bucket object: its streams end, and it accepts no calls.
    pub fn retire(&self, why: Error) {
        self.state().serving.retired.get_or_insert(why);
        self.transactions.close();
        self.wake();
    }

    /// The error for callers of a removed bucket.
    pub fn removed_error(&self) -> Error {
        let retired = self.state().serving.retired.clone();
        retired.unwrap_or_else(|| Error::internal("the bucket is still served"))
    }

    /// Returns the error for callers of a bucket that another projector leads; the call had no
    /// effect.
    pub fn led_elsewhere(&self, leader: NodeId) -> Error {
        let what = format!("bucket {}: projector {leader} leads it, or soon will", self.info.name);
        Error::new(ErrorCode::NotOwner, what).with_hint("try again")
    }

    /// Returns the error for callers whose writes may or may not be durable.
    pub fn in_doubt(&self) -> Error {
        let what = format!(
            "bucket {}: another copy leads now; whether the write was made is unknown",
            self.info.name
        );
        Error::new(ErrorCode::Interrupted, what)
            .with_hint("look whether the write is there before you repeat it")
    }

    /// Returns the error for callers whose writes had no room, because the other copies have not
    /// confirmed earlier writes.
    pub fn crowded(&self) -> Error {
        let name = &self.info.name;
        let what = format!(
            "bucket {name}: its other copies do not confirm the writes that wait already; nothing was written"
        );
        Error::unavailable(what).with_hint("another copy may lead soon; try again")
    }

    /// Returns the error for callers whose writes were not confirmed by the other copies in time.
    pub fn unconfirmed(&self) -> Error {
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
