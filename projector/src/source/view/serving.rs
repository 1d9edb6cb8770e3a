//! The states in which a bucket is served or not served ([`super::availability`]).

use proto::Error;
use proto::model::bucket::SourceKind;

/// The serving state of a bucket, with the reason if it is not served.
pub(super) struct ServingState {
    pub stage: Stage,
    /// The error for callers once the bucket is not served any more.
    pub retired: Option<Error>,
}

/// The stages of a bucket before it is retired.
pub(super) enum Stage {
    /// The bucket is not served yet: the coordinators have not compared it, or it has lost
    /// mutations. The error says which.
    Closed(Error),
    /// The bucket is served.
    Open,
    /// The bucket's leader is about to hand leadership over to another copy.
    Paused(Error),
    /// The bucket object is never served again: another copy leads, or this copy will lead with a
    /// new object.
    Ended(Error),
}

impl ServingState {
    /// Creates the state of a new bucket object. The only copy of a bucket is not served until
    /// the coordinators have compared it.
    pub fn new(source: SourceKind) -> Self {
        let stage = match source.is_only_copy() {
            true => Stage::Closed(awaits_coordinators()),
            false => Stage::Open,
        };
        Self { stage, retired: None }
    }

    /// True if the bucket was removed or replaced.
    pub fn is_retired(&self) -> bool {
        self.retired.is_some()
    }

    /// Returns the reason why the bucket is not served; `None` if it is served.
    pub fn refusal(&self) -> Option<Error> {
        match &self.stage {
            Stage::Open => None,
            Stage::Closed(why) | Stage::Paused(why) | Stage::Ended(why) => Some(why.clone()),
        }
    }
}

/// Returns the error for callers of a bucket that the coordinators have not compared yet.
fn awaits_coordinators() -> Error {
    let what = "the projector waits for the coordinators, which know what the bucket must have";
    Error::unavailable(what).with_hint("a majority of the coordinators must run; try again")
}
