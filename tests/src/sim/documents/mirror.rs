//! The mirror of a projector's store: the contents that the store must have, and the changes that
//! it may have in addition.
//!
//! A change is *in doubt* from its beginning until it succeeds. A change that fails with the disk,
//! or is interrupted by a crash, remains in doubt until the store is opened again. A later change
//! of the same bucket that succeeds proves that the failed one had no effect, because a bucket
//! accepts nothing after a failed write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use projector::testing::{BucketRecord, Mutation, StoredId};
use proto::model::bucket::SourceKind;
use proto::model::ids::{BucketId, Seqno, VbucketId};

use super::contents::{Change, Contents};
use super::ledger::Ledger;
use super::reconcile::{Found, Settled, settle};
use crate::sim::judge::statements::History;

/// A change of the store.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "almost all changes are of a bucket")]
pub enum StoreChange {
    /// A change of a bucket.
    Bucket(BucketId, Change),
    /// A new catalog: its `cas`, the buckets that it creates and those that it removes.
    Catalog { cas: u64, made: Vec<BucketRecord>, removed: Vec<BucketId> },
    /// Random ids of buckets that the store has drawn.
    Ids(Vec<(BucketId, StoredId)>),
}

/// A change whose outcome is unknown.
#[derive(Clone)]
pub(super) struct ChangeInDoubt {
    number: u64,
    pub(super) change: StoreChange,
    /// True if the store has returned an error for the change.
    has_failed: bool,
}

/// The contents that a store must have.
#[derive(Clone, Default)]
pub struct Known {
    pub(super) cas: u64,
    pub(super) ids: BTreeMap<BucketId, StoredId>,
    pub(super) buckets: BTreeMap<BucketId, Contents>,
}

impl Known {
    /// Applies a change; the error tells why the change does not fit the contents.
    pub(super) fn apply(&mut self, change: &StoreChange) -> Result<(), String> {
        match change {
            StoreChange::Bucket(bucket, change) => {
                let contents = self.buckets.get_mut(bucket);
                contents.map_or(Ok(()), |contents| contents.apply(change))
            }
            StoreChange::Catalog { cas, made, removed } => {
                for record in made {
                    let of = self.buckets.entry(record.info.id);
                    of.or_insert_with(|| Contents::new(record.clone()));
                }
                removed.iter().for_each(|bucket| drop(self.buckets.remove(bucket)));
                self.cas = *cas;
                Ok(())
            }
            StoreChange::Ids(ids) => {
                self.ids.extend(ids.iter().copied());
                Ok(())
            }
        }
    }
}

/// A vbucket whose history a return to an earlier state changes.
pub(super) struct ChangedVbucket {
    bucket: BucketId,
    pub(super) vbucket: VbucketId,
    /// The last seqno of the history that remains.
    pub(super) kept: Seqno,
    /// True if the return removes mutations; false if it undoes a rewind after which nothing was
    /// written.
    is_loss: bool,
    /// True if a producer pushes the bucket.
    pub(super) is_pushed: bool,
}

/// The mirror of one projector's store; clones share it. Its lock is not a yield point, since it is
/// never held during other work.
#[derive(Clone, Default)]
pub struct Mirror(Arc<Mutex<State>>);

#[derive(Default)]
pub(super) struct State {
    pub(super) known: Known,
    pub(super) ledger: Ledger,
    doubts: Vec<ChangeInDoubt>,
    /// The buckets that the last opening found damaged. The store must have their contents after a
    /// repair.
    pub(super) damaged: BTreeSet<BucketId>,
    /// True if damaged files are kept for the operator.
    pub(super) keeps_files: bool,
    next: u64,
    /// The lost histories of each bucket, oldest first.
    pub(super) past: BTreeMap<BucketId, Vec<History>>,
    counts: BTreeMap<&'static str, u64>,
    /// True if the projector has been told of a loss that its operator has not accepted.
    is_told_of_loss: bool,
    violations: Vec<String>,
}

impl State {
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Stores the present history of a bucket as a lost one, for the judge.
    pub(super) fn keep_history(&mut self, bucket: BucketId) {
        if let Some(contents) = self.known.buckets.get(&bucket) {
            let history = (contents.record.branches.clone(), contents.log.clone());
            self.past.entry(bucket).or_default().push(history);
        }
    }

    /// Applies a change that is known to be stored.
    fn apply(&mut self, change: &StoreChange) {
        if let StoreChange::Bucket(bucket, of_bucket) = change
            && let Some(contents) = self.known.buckets.get(bucket)
            && of_bucket.ends_history(&contents.record.branches)
        {
            self.keep_history(*bucket);
        }
        if let StoreChange::Catalog { removed, .. } = change {
            // A copy that is not needed any more may be the only one with all of its log.
            removed.iter().for_each(|bucket| self.keep_history(*bucket));
        }
        if let Err(why) = self.known.apply(change) {
            self.violations.push(format!("the store accepted a change that does not fit: {why}"));
        }
        if let StoreChange::Bucket(bucket, of_bucket) = change {
            self.note_change(*bucket, of_bucket);
        }
    }

    /// Counts the kinds of changes of an embedded bucket's copy, and adds its mutations to the
    /// ledger.
    fn note_change(&mut self, bucket: BucketId, change: &Change) {
        let Some(contents) = self.known.buckets.get(&bucket) else { return };
        if !contents.record.info.source.is_only_copy() {
            return;
        }
        let counted = match change {
            Change::Commit { mutations, record, .. } => {
                let branches = &contents.record.branches;
                let differ = mutations.iter().filter_map(|mutation| {
                    let of_vbucket = &branches[usize::from(mutation.vbucket.0)];
                    self.ledger.add(bucket, of_vbucket, mutation)
                });
                self.violations.extend(differ.take(1));
                // Only a copy that is being filled receives branches together with mutations.
                record.is_some().then_some("copies filled by log")
            }
            Change::BeginPurged { .. } => Some("copies filled by documents"),
            Change::Rewind { .. } => Some("copies rewound"),
            Change::Anew(_) => Some("damaged copies made anew"),
            _ => None,
        };
        if let Some(counted) = counted {
            self.count(counted);
        }
    }

    /// Applies the commits whose mutations were purged: they must be in the log and are durable,
    /// though their calls have not returned yet.
    fn confirm_purged(&mut self, bucket: BucketId, to: &[(VbucketId, Seqno)]) {
        let Some(contents) = self.known.buckets.get(&bucket) else { return };
        let end = |vbucket: VbucketId| contents.log[usize::from(vbucket.0)].len() as u64;
        let beyond: Vec<_> = to.iter().filter(|(vbucket, to)| end(*vbucket) < to.0).collect();
        let is_purged = |mutation: &Arc<Mutation>| {
            beyond.iter().any(|(v, to)| *v == mutation.vbucket && mutation.seqno <= *to)
        };
        let is_there = |doubt: &mut ChangeInDoubt| match &doubt.change {
            StoreChange::Bucket(of, Change::Commit { mutations, .. }) => {
                *of == bucket && mutations.iter().any(is_purged)
            }
            _ => false,
        };
        let there: Vec<ChangeInDoubt> = self.doubts.extract_if(.., is_there).collect();
        there.iter().for_each(|doubt| self.apply(&doubt.change));
    }

    /// Returns the changes in doubt of a bucket, in the order of their beginnings.
    pub(super) fn doubts_of(&self, bucket: BucketId) -> impl Iterator<Item = &Change> {
        self.doubts.iter().filter_map(move |doubt| match &doubt.change {
            StoreChange::Bucket(of, change) if *of == bucket => Some(change),
            _ => None,
        })
    }
}

impl Mirror {
    /// Returns the mirror of a projector that shares a ledger with others.
    pub fn with_ledger(ledger: &Ledger) -> Self {
        let ledger = ledger.clone();
        Self(Arc::new(Mutex::new(State { ledger, ..State::default() })))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("not poisoned")
    }

    /// Records the beginning of changes; returns their numbers.
    pub(super) fn begin(&self, changes: Vec<StoreChange>) -> Vec<u64> {
        let mut state = self.state();
        let begun = changes.into_iter().map(|change| {
            state.next += 1;
            let number = state.next;
            state.doubts.push(ChangeInDoubt { number, change, has_failed: false });
            number
        });
        begun.collect()
    }

    /// Records that a change has succeeded.
    pub(super) fn succeeded(&self, number: u64) {
        let mut state = self.state();
        let Some(at) = state.doubts.iter().position(|doubt| doubt.number == number) else { return };
        let ChangeInDoubt { change, .. } = state.doubts.remove(at);
        state.doubts.retain(|doubt| !(doubt.has_failed && is_of_same(&doubt.change, &change)));
        match &change {
            StoreChange::Bucket(bucket, Change::Purge(to)) => state.confirm_purged(*bucket, to),
            StoreChange::Bucket(bucket, Change::Anew(_)) => {
                state.damaged.remove(bucket);
                // Whatever was in doubt when the bucket was damaged is given up with it.
                let of = |doubt: &ChangeInDoubt| matches!(&doubt.change, StoreChange::Bucket(of, _) if of == bucket);
                state.doubts.retain(|doubt| !of(doubt));
            }
            StoreChange::Catalog { removed, .. } => {
                state.damaged.retain(|bucket| !removed.contains(bucket));
            }
            _ => {}
        }
        state.apply(&change);
    }

    /// Records that a change was refused before it had an effect.
    pub(super) fn refused(&self, number: u64) {
        self.state().doubts.retain(|doubt| doubt.number != number);
    }

    /// Records that the store has failed during a change.
    pub(super) fn failed(&self, number: u64) {
        let mut state = self.state();
        let mut doubts = state.doubts.iter_mut();
        if let Some(doubt) = doubts.find(|doubt| doubt.number == number) {
            doubt.has_failed = true;
        }
    }

    /// Compares the contents of a reopened store with those that it must have, and continues from
    /// the store's contents. `may_be_damaged` means that a bit of the disk was flipped: damaged
    /// buckets are then not compared, and their expected contents are kept.
    pub(super) fn reconcile(&self, found: &Found, may_be_damaged: bool) {
        let mut state = self.state();
        let is_damaged = |doubt: &ChangeInDoubt| matches!(&doubt.change, StoreChange::Bucket(of, _) if found.damaged.contains_key(of));
        let doubts = std::mem::take(&mut state.doubts);
        let (left, doubts): (Vec<_>, Vec<_>) = doubts.into_iter().partition(is_damaged);
        state.doubts = left;
        state.damaged = found.damaged.keys().copied().collect();
        for (bucket, damaged) in found.damaged.iter().filter(|_| !may_be_damaged) {
            let what = format!("bucket {bucket} is damaged without a fault: {}", damaged.error);
            state.violations.push(what);
        }
        let doubtful: Vec<&StoreChange> = doubts.iter().map(|doubt| &doubt.change).collect();
        let Settled { kept, differences } = settle(&state.known, &doubtful, found);
        for (n, change) in doubtful.into_iter().enumerate() {
            let is_kept = kept.contains(&n);
            if let StoreChange::Bucket(_, Change::Commit { .. }) = change {
                let fate = ["doubtful commits: lost", "doubtful commits: kept"];
                state.count(fate[usize::from(is_kept)]);
            }
        }
        for n in kept {
            state.apply(&doubts[n].change);
        }
        state.count("stores compared with their mirror");
        state.violations.extend(differences);
    }

    /// Returns the contents that the store must have; `None` while a change is in doubt or a bucket
    /// is damaged.
    pub(super) fn known(&self) -> Option<Known> {
        let state = self.state();
        let is_certain = state.doubts.is_empty() && state.damaged.is_empty();
        is_certain.then(|| state.known.clone())
    }

    /// Returns the vbuckets that would lose mutations by a return to an earlier state, with their
    /// ends in that state.
    pub(super) fn lost_since(&self, known: &Known) -> Vec<(BucketId, VbucketId, Seqno)> {
        let lost = self.changed_since(known).into_iter().filter(|changed| changed.is_loss);
        lost.map(|changed| (changed.bucket, changed.vbucket, changed.kept)).collect()
    }

    /// Returns the vbuckets whose histories a return to an earlier state would change.
    pub(super) fn changed_since(&self, known: &Known) -> Vec<ChangedVbucket> {
        let state = self.state();
        let mut changed = Vec::new();
        for (bucket, now) in &state.known.buckets {
            for vbucket in (0..now.record.info.vbuckets).map(VbucketId) {
                let older = known.buckets.get(bucket);
                let kept = older.map_or(Seqno(0), |older| now.common_with(older, vbucket));
                let len = |contents: &Contents| contents.log[usize::from(vbucket.0)].len() as u64;
                let is_loss = kept.0 < len(now);
                if is_loss || kept.0 < older.map_or(0, len) {
                    let is_pushed = now.record.info.source == SourceKind::Push;
                    let bucket = *bucket;
                    changed.push(ChangedVbucket { bucket, vbucket, kept, is_loss, is_pushed });
                }
            }
        }
        changed
    }

    /// Returns to an earlier state, and stores the present histories as lost ones.
    pub(super) fn go_back(&self, known: &Known) {
        let mut state = self.state();
        state.doubts.clear();
        state.damaged.clear();
        let buckets: Vec<BucketId> = state.known.buckets.keys().copied().collect();
        buckets.into_iter().for_each(|bucket| state.keep_history(bucket));
        state.known = known.clone();
    }

    /// Removes all contents, because the disk was replaced.
    pub fn lose_all(&self) {
        self.go_back(&Known::default());
        self.tell_loss(false);
    }

    /// True if the projector has been told of a loss that its operator has not accepted.
    pub fn is_told_of_loss(&self) -> bool {
        self.state().is_told_of_loss
    }

    /// Sets whether the projector has been told of a loss that its operator has not accepted.
    pub fn tell_loss(&self, is_told: bool) {
        let mut state = self.state();
        if is_told && !state.is_told_of_loss {
            state.count("losses that a projector was told of");
        }
        state.is_told_of_loss = is_told;
    }

    /// Removes and returns the violations.
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.state().violations)
    }

    /// Returns counts of events by name.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.state().counts.clone()
    }
}

/// True if two changes concern one bucket, or both the manifest.
fn is_of_same(one: &StoreChange, other: &StoreChange) -> bool {
    let bucket = |change: &StoreChange| match change {
        StoreChange::Bucket(bucket, _) => Some(*bucket),
        StoreChange::Catalog { .. } | StoreChange::Ids(_) => None,
    };
    bucket(one) == bucket(other)
}
