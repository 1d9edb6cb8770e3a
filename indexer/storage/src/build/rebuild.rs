//! Rebuilds: some slices of an index are built from the source beside those of it that are here, which go on and answer.
//!
//! A rebuild is an index of its own that nobody reads and no manifest names. Epochs are applied to it as to any build
//! ([`crate::build::builds`]), and of the backfill it takes its own slices. When an applied epoch covers the backfill's cut,
//! its slices become part of the index at that epoch as slices that have arrived ([`crate::edit::arrival`]), with that epoch
//! as their floor: fragments change hands, and no row is written twice. Where nothing of the index is here, they are
//! the first of it.
//!
//! An index has one rebuild at a time. A crash before its end leaves files that no manifest names, and the slices are
//! as absent as they were.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::Result;
use proto::model::ids::Epoch;

use crate::build::backfill::{end_backfill, gathered_bytes_max};
use crate::build::finish::{Joined, join_backfill};
use crate::edit::arrival::{
    Arrived, ArrivedSlice, Between, Entries, NotInstalled, behind, check_newest, take_in,
};
use crate::edit::edits::drop_with;
use crate::file_id::FileId;
use crate::files::data_files::Files;
use crate::index::local_index::Slot;
use crate::lock::lock;
use crate::maintain::flush::flush;
use crate::node::context::Inner;
use crate::retention::Protected;
use crate::tables::table::Table;

/// Shows the slices of a rebuild from an epoch on, which must be the newest one applied. After an error the
/// rebuild is over too, and its slices are as absent as before.
pub async fn finish_rebuild(context: &Arc<Inner>, slot: Arc<Slot>, epoch: Epoch) -> Result<()> {
    end_backfill(context, &slot).await?;
    let (inner, at) = (Arc::clone(context), behind(context, slot.info.bucket, epoch).await);
    let work = move || {
        // Whoever asked may be gone by now, and its successor may apply epochs.
        let alone = inner.state.alone(slot.info.bucket);
        let _alone = lock(&alone);
        let shown = show_rebuilt(&inner, &slot, at);
        inner.state.take_rebuild(slot.info.id);
        if shown.is_err() {
            drop_with(&slot, &inner.files, || Ok(()))?;
        }
        shown
    };
    context.env.blocking(work).await
}

fn show_rebuilt(context: &Inner, slot: &Slot, at: Between) -> Result<()> {
    check_newest(context, slot.info.bucket, at)?;
    let arrived = arrive(slot, at.epoch, &context.files, gathered_bytes_max(context))?;
    let tables = arrived.tables.clone();
    take_in(context, arrived, at).map_err(|error| match error {
        NotInstalled::For(error) => {
            context.files.retire(tables.into_iter().collect());
            error
        }
        // The manifest on disk may name the files: they stay, and the next start sorts that out.
        NotInstalled::Unsure(error) => error,
    })
}

/// Ends a rebuild: what it has made is the caller's.
fn arrive(index: &Slot, epoch: Epoch, files: &Files, bytes_max: usize) -> Result<Arrived> {
    flush(index, files)?;
    let mut structure = lock(&index.structure);
    let joined = join_backfill(index, &mut structure, epoch, files, bytes_max)?;
    let Joined { manifest, new } = joined;
    structure.dropped = true;
    structure.manifest.slices.clear();
    let mut tables: BTreeMap<FileId, Arc<Table>> = std::mem::take(&mut structure.tables);
    tables.extend(new.into_iter().map(|new| (new.file, new.table)));
    index.visible.store(Arc::default());
    let slices = manifest.slices.into_iter().map(|(slice, lists)| {
        let reach = Protected { horizon: epoch, points: Vec::new() };
        let entries = manifest.entries.get(&slice).copied().unwrap_or_default();
        (slice, ArrivedSlice { lists, reach, entries: Entries::Counted(entries) })
    });
    Ok(Arrived { slices: slices.collect(), tables, info: manifest.info })
}

#[cfg(test)]
#[path = "rebuild_tests.rs"]
mod tests;
