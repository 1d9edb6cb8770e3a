//! The two ends of a slice move: giving a slice's fragments away as files, and taking them in.
//!
//! The source flushes, so that all epochs up to one are in fragments, and hands out the slice's lists and the
//! files that they name, byte for byte, with all versions that are in them. It can be asked again: what the
//! target has already is not sent a second time, and while a slice is being given away its index is not
//! compacted, so that a later round brings only what was flushed since. Files are known by their numbers, which mean
//! something only as long as the source has its store open: every opening has a random mark, and another mark than
//! before lets go of all that was received.
//!
//! The target stores each file under a number of its own and checks every piece. It *installs* the slice at an
//! epoch that it has applied, between two epochs: the lists, restricted to that epoch, become the slice's
//! ([`crate::edit::arrival`]), and from the next epoch on the slice is fed by the node's own stream. So nothing is applied
//! twice and nothing is missed: what is at or below the epoch comes from the source, what is above from the stream.
//!
//! A floor above the epoch means that the source has let go of what the epoch needs: the target waits for a
//! later one. Files that were received and are in no manifest are deleted when the node starts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::Error;
use proto::model::cut::EpochMark;
use proto::model::ids::SliceId;
use proto::model::index::IndexInfo;

use crate::edit::arrival::{
    Arrived, ArrivedSlice, Between, Entries, NotInstalled, behind, take_in,
};
use crate::edit::receive::Received;
use crate::file_id::FileId;
use crate::lock::lock;
use crate::node::context::Inner;
use crate::retention::Protected;

/// Why a slice was not installed; what was received is kept.
pub struct Refused {
    /// Why.
    pub error: Error,
    /// What was received.
    pub received: Received,
}

/// Shows a received slice from an epoch on, which must be the newest one applied to its bucket, and no
/// epoch may be applied meanwhile. `Unavailable` where another round of the source is needed first.
pub async fn install(
    context: &Arc<Inner>,
    received: Received,
    slice: SliceId,
    info: Arc<IndexInfo>,
    mark: &EpochMark,
) -> std::result::Result<(), Box<Refused>> {
    if let Err(error) = received.check(mark) {
        return Err(Box::new(Refused { error, received }));
    }
    // What is at or below the epoch must not be asked of the stream again after a crash.
    if let Err(error) = context.log.sync().await {
        return Err(Box::new(Refused { error, received }));
    }
    let inner = Arc::clone(context);
    let at = behind(&inner, mark.bucket, mark.epoch).await;
    let work = move || {
        let alone = inner.state.alone(info.bucket);
        let _alone = lock(&alone);
        let mut received = received;
        match install_files(&inner, &received, slice, info, at) {
            Ok(()) => {
                received.files.clear();
                Ok(())
            }
            Err(NotInstalled::For(error)) => Err(Box::new(Refused { error, received })),
            Err(NotInstalled::Unsure(error)) => {
                // The manifest on disk may name the files: they stay, and the next start sorts that out.
                received.files.clear();
                Err(Box::new(Refused { error, received }))
            }
        }
    };
    context.env.blocking(work).await
}

fn install_files(
    context: &Inner,
    received: &Received,
    slice: SliceId,
    info: Arc<IndexInfo>,
    at: Between,
) -> std::result::Result<(), NotInstalled> {
    let head = received.head.as_ref().ok_or_else(|| Error::internal("nothing was received"))?;
    let lists = received.lists_at(head, at.epoch)?;
    let named: BTreeSet<FileId> = lists.files().collect();
    let tables = received.files.values().filter(|(file, _)| named.contains(file));
    let arrived = ArrivedSlice {
        lists,
        reach: Protected { horizon: head.floor, points: head.points.clone() },
        entries: Entries::Told(head.entries),
    };
    let slices = BTreeMap::from([(slice.slice, arrived)]);
    context.files.sync_names()?;
    take_in(context, Arrived { slices, tables: tables.cloned().collect(), info }, at)?;
    // Fragments that hold nothing of the epoch's past are in no list.
    let unnamed = received.files.values().filter(|(file, _)| !named.contains(file)).cloned();
    context.files.retire(unnamed.collect());
    Ok(())
}

#[cfg(test)]
#[path = "install_tests.rs"]
pub(crate) mod tests;
