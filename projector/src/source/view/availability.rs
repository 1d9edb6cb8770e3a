//! Whether a bucket is served, and what its callers learn if it is not.
//!
//! | state | callers get |
//! |---|---|
//! | open | the answer, while the lease of the other copies holds |
//! | closed: not compared by the coordinators yet, or follows another copy | the reason; nothing was done |
//! | paused: gives its place away | the reason; nothing was done |
//! | ended: another copy leads, or this one will in a moment | the reason; nothing was done |
//! | retired: dropped, or replaced | the reason; streams end |

use proto::model::ids::{NodeId, VbucketId};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::bucket::Bucket;
use super::serving::Stage;

impl Bucket {
    /// Checks that the bucket is served. The only copy of a bucket is served once the coordinators have compared it with the last
    /// epoch ([`crate::follow`]), and a leading copy while it has a lease of its followers.
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

    /// True if this projector leads the bucket, with its branches begun. It may be about to give its place away.
    pub fn is_led(&self) -> bool {
        let state = self.state();
        !state.serving.is_retired() && matches!(state.serving.stage, Stage::Open | Stage::Paused(_))
    }

    /// True if another copy leads, and this state of the bucket will be replaced.
    pub fn has_ended(&self) -> bool {
        let state = self.state();
        state.serving.is_retired() || matches!(state.serving.stage, Stage::Ended(_))
    }

    /// Why the writer takes no mutations; `None` if it does.
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

    /// Says why the bucket is not served yet.
    pub fn refuse(&self, why: Error) {
        self.change_stage(|stage| matches!(stage, Stage::Closed(_)).then_some(Stage::Closed(why)));
    }

    /// Takes no mutations and answers nothing until [`Self::resume`]. Returns false if the bucket is not open.
    pub fn pause(&self, why: Error) -> bool {
        self.change_stage(|stage| matches!(stage, Stage::Open).then_some(Stage::Paused(why)))
    }

    /// Goes on after a pause.
    pub fn resume(&self) {
        self.change_stage(|stage| matches!(stage, Stage::Paused(_)).then_some(Stage::Open));
    }

    /// Takes no mutations and answers nothing from now on: another copy leads.
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

    /// True if this process numbers the mutations of the bucket, or of some of its vbuckets. Another projector leads otherwise.
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

    /// Ends the bucket as it is: its streams end, and it takes nothing more.
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

    /// The error for callers whose writes had no room, because the other copies have not confirmed earlier ones.
    pub fn crowded(&self) -> Error {
        let name = &self.info.name;
        let what = format!(
            "bucket {name}: its other copies do not confirm the writes that wait already; nothing was written"
        );
        Error::unavailable(what).with_hint("another copy may lead soon; try again")
    }

    /// The error for callers whose writes the other copies have not confirmed in time.
    pub fn unconfirmed(&self) -> Error {
        let name = &self.info.name;
        let what = format!(
            "bucket {name}: its other copies have not confirmed the write in time; whether it was made is unknown"
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
