//! Commits a batch in two steps: first its group is logged, and then its documents are added to
//! the table.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::lock::lock;
use proto::model::commits::TransactionEvent;
use proto::model::history::branch_of;
use proto::model::joint::PreparedTransaction;
use proto::{Error, Result};

use super::bucket_store::{BucketStore, Changes, LoggedGroup, check_not_broken};
use super::replay::{version, version_place};
use crate::change_log::{GroupPlace, MutationPlace};
use crate::document_store::Batch;
use crate::mutation::Mutation;
use crate::table::{MadeRuns, VersionRef};

impl BucketStore {
    /// Makes the changes of a batch durable in the log. Each returned group must be passed to
    /// [`Self::show`] later, in the order of the calls of this function.
    pub(super) fn log_group(&self, changes: &Batch) -> Result<LoggedGroup> {
        let mut this = lock(&self.changes);
        // The table may still be processing the previous batch; this step does not wait for it.
        check_not_broken(this.is_broken || self.has_failed_show.load(Ordering::Acquire))?;
        let far = self.far_prepared(&this, changes);
        let known = changes.record.as_ref().map(|next| this.known_places(next));
        let Changes { record, group, .. } = &mut *this;
        group.clear();
        if let (Some(next), Some(known)) = (&changes.record, &known) {
            group.record(next, known)?;
        }
        let branches = &changes.record.as_ref().unwrap_or(record).branches;
        for mutation in &changes.mutations {
            let of_vbucket = branches.get(usize::from(mutation.vbucket.0));
            let vbuuid = of_vbucket.map(|branches| branch_of(branches, mutation.seqno));
            group.mutation(vbuuid.unwrap_or_default(), mutation);
        }
        far.iter().chain(&changes.commits).try_for_each(|event| group.transaction(event))?;
        let (place, made) = self.append_batch(&mut this, &changes.mutations)?;
        // The next group of the bucket may be long in coming.
        this.group.clear();
        if let (Some(next), Some(known)) = (&changes.record, known) {
            (this.record, this.places) = (next.clone(), known);
        }
        changes.commits.iter().for_each(|event| this.record.commits.apply_event(event));
        this.note_prepared(&place);
        this.batches += 1;
        this.is_broken = false;
        Ok(LoggedGroup { place, places: this.places.clone(), number: this.batches, made })
    }

    /// Appends the group of a batch to the log, and syncs it. For a large batch, also returns the
    /// sorted runs for the table, which are built at the same time.
    fn append_batch(
        &self,
        this: &mut Changes,
        mutations: &[Arc<Mutation>],
    ) -> Result<(GroupPlace, Option<MadeRuns>)> {
        let sizes = mutations.iter().map(|one| (one.id.len(), one.document.len()));
        if !self.table.are_large(sizes) {
            return Ok((self.append(this)?, None));
        }
        let make = |places: &[MutationPlace], order: &[u32]| {
            self.table.make_runs(&versions(mutations, places, order))
        };
        // Whatever happens from here on, also a panic: the log may have the group.
        this.is_broken = true;
        let appended = self.log.append_beside(&this.group, &self.env, make);
        // An outer error means that nothing was written.
        let (made, place) = appended.inspect_err(|_| this.is_broken = false)?;
        Ok((place?, Some(made)))
    }

    /// Returns the prepared transactions whose changes a batch writes to the log again: all whose
    /// changes the log lacks, and at most one whose changes are far before the end of the log.
    /// The distance grows with the total size of prepared changes, so that the log does not
    /// consist mainly of them. A batch writes only one of the far ones, so that no batch becomes
    /// much larger.
    fn far_prepared(&self, this: &Changes, changes: &Batch) -> Vec<TransactionEvent> {
        if !this.record.commits.has_prepared() || changes.record.is_some() {
            return Vec::new();
        }
        let all_bytes: u64 = this.places.iter().map(|(_, place)| u64::from(place.bytes)).sum();
        let most = self.prepared_behind_bytes.max(4 * all_bytes);
        let oldest = this.places.iter().min_by_key(|(_, place)| place.item);
        let end = self.log.end();
        let far = oldest.filter(|(_, place)| end - place.item > most).map(|(oldest, _)| oldest);
        let is_far = |prepared: &&Arc<PreparedTransaction>| {
            far == Some(prepared.transaction) || this.places.get(prepared.transaction).is_none()
        };
        let ends = |prepared: &&Arc<PreparedTransaction>| {
            let mut commits = this.record.commits.with_prepared(|one| Some(Arc::clone(one)));
            changes.commits.iter().for_each(|event| commits.apply_event(event));
            commits.find_prepared(prepared.transaction).is_none()
        };
        let far = this.record.commits.prepared().filter(is_far);
        far.filter(|prepared| !ends(prepared)).cloned().map(TransactionEvent::Prepared).collect()
    }

    /// Adds the documents of a logged batch to the table.
    pub(super) fn show(&self, changes: &Batch, logged: LoggedGroup) -> Result<()> {
        let shown = self.show_in_order(changes, logged);
        if shown.is_err() {
            self.has_failed_show.store(true, Ordering::Release);
        }
        shown
    }

    fn show_in_order(&self, changes: &Batch, logged: LoggedGroup) -> Result<()> {
        let mut shown = lock(&self.shown);
        check_not_broken(shown.is_broken)?;
        shown.is_broken = true;
        if logged.number != shown.batches + 1 {
            return Err(Error::internal("the batches of a bucket are shown out of order"));
        }
        match logged.made {
            Some(made) => self.table.add_made_runs(made)?,
            None => {
                let GroupPlace { mutations, order, .. } = &logged.place;
                self.table.apply(&versions(&changes.mutations, mutations, order))?;
            }
        }
        self.table.record_reached(logged.place.end);
        for (vbucket, state) in &logged.place.states {
            shown.state.vbuckets[usize::from(vbucket.0)] = *state;
        }
        shown.state.from = logged.place.end;
        if let Some(record) = &changes.record {
            shown.record = record.clone();
        }
        changes.commits.iter().for_each(|event| shown.record.commits.apply_event(event));
        shown.places = logged.places;
        shown.batches = logged.number;
        shown.is_broken = false;
        Ok(())
    }
}

/// Converts mutations into versions of the table, in the order of their places in the log.
fn versions<'m>(
    mutations: &'m [Arc<Mutation>],
    places: &[MutationPlace],
    order: &[u32],
) -> Vec<VersionRef<'m>> {
    let ordered = order.iter().map(|index| *index as usize);
    ordered.map(|index| version(&mutations[index], version_place(&places[index]))).collect()
}
