//! The mirror of a projector's store: the contents that the store must have, and those that it may have.
//!
//! A change is *in doubt* from its beginning until it succeeds. If it fails because the disk does, or is cut short by a crash, it
//! stays in doubt until the store is opened again. A later change of the same bucket that succeeds proves that the failed one had no
//! effect, because a bucket accepts nothing after a failed write.

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
    /// A new catalog: its `cas`, the buckets that it makes, and those that it removes.
    Catalog { cas: u64, made: Vec<BucketRecord>, removed: Vec<BucketId> },
    /// Random ids of buckets.
    Ids(Vec<(BucketId, StoredId)>),
}

/// A change whose outcome is unknown.
#[derive(Clone)]
pub(super) struct Doubt {
    number: u64,
    pub(super) change: StoreChange,
    /// True if the store has refused it with an error.
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
    /// Applies a change. The error is the reason why it does not fit.
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

/// A vbucket whose history a return to an earlier moment changes.
pub(super) struct ChangedVbucket {
    bucket: BucketId,
    pub(super) vbucket: VbucketId,
    /// The history up to here stays.
    pub(super) kept: Seqno,
    /// True if the return takes mutations away. Otherwise it undoes a rewind that has nothing new after it.
    is_loss: bool,
    /// True if a producer pushes the bucket.
    pub(super) is_pushed: bool,
}

/// The mirror of one projector's store; clones share it. Its lock is no yield point: it is never held during other work.
#[derive(Clone, Default)]
pub struct Mirror(Arc<Mutex<State>>);

#[derive(Default)]
pub(super) struct State {
    pub(super) known: Known,
    pub(super) ledger: Ledger,
    doubts: Vec<Doubt>,
    /// The buckets that the last opening has found damaged. The store must still have their contents, if the damage is mended.
    pub(super) damaged: BTreeSet<BucketId>,
    /// True if damaged files are kept for the operator.
    pub(super) keeps_files: bool,
    next: u64,
    /// Histories that were left, oldest first.
    pub(super) past: BTreeMap<BucketId, Vec<History>>,
    counts: BTreeMap<&'static str, u64>,
    /// True if a loss was reported to the projector that its operator has not accepted.
    is_told_of_loss: bool,
    violations: Vec<String>,
}

impl State {
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Keeps the present history of a bucket for the judge.
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

    /// Counts what happens to a copy of an embedded bucket, and adds its mutations to the ledger.
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

    /// Makes the commits whose mutations were purged. The log has them, so they are durable, though their call has not returned yet.
    fn confirm_purged(&mut self, bucket: BucketId, to: &[(VbucketId, Seqno)]) {
        let Some(contents) = self.known.buckets.get(&bucket) else { return };
        let end = |vbucket: VbucketId| contents.log[usize::from(vbucket.0)].len() as u64;
        let beyond: Vec<_> = to.iter().filter(|(vbucket, to)| end(*vbucket) < to.0).collect();
        let is_purged = |mutation: &Arc<Mutation>| {
            beyond.iter().any(|(v, to)| *v == mutation.vbucket && mutation.seqno <= *to)
        };
        let is_there = |doubt: &mut Doubt| match &doubt.change {
            StoreChange::Bucket(of, Change::Commit { mutations, .. }) => {
                *of == bucket && mutations.iter().any(is_purged)
            }
            _ => false,
        };
        let there: Vec<Doubt> = self.doubts.extract_if(.., is_there).collect();
        there.iter().for_each(|doubt| self.apply(&doubt.change));
    }

    /// The changes in doubt of a bucket, in the order in which they began.
    pub(super) fn doubts_of(&self, bucket: BucketId) -> impl Iterator<Item = &Change> {
        self.doubts.iter().filter_map(move |doubt| match &doubt.change {
            StoreChange::Bucket(of, change) if *of == bucket => Some(change),
            _ => None,
        })
    }
}

impl Mirror {
    /// The mirror of a projector that shares a ledger with others.
    pub fn with_ledger(ledger: &Ledger) -> Self {
        let ledger = ledger.clone();
        Self(Arc::new(Mutex::new(State { ledger, ..State::default() })))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("not poisoned")
    }

    /// Records that changes begin; returns their numbers.
    pub(super) fn begin(&self, changes: Vec<StoreChange>) -> Vec<u64> {
        let mut state = self.state();
        let begun = changes.into_iter().map(|change| {
            state.next += 1;
            let number = state.next;
            state.doubts.push(Doubt { number, change, has_failed: false });
            number
        });
        begun.collect()
    }

    /// Records that a change has succeeded.
    pub(super) fn succeeded(&self, number: u64) {
        let mut state = self.state();
        let Some(at) = state.doubts.iter().position(|doubt| doubt.number == number) else { return };
        let Doubt { change, .. } = state.doubts.remove(at);
        state.doubts.retain(|doubt| !(doubt.has_failed && is_of_same(&doubt.change, &change)));
        match &change {
            StoreChange::Bucket(bucket, Change::Purge(to)) => state.confirm_purged(*bucket, to),
            StoreChange::Bucket(bucket, Change::Anew(_)) => {
                state.damaged.remove(bucket);
                // Whatever was in doubt when the bucket was damaged is given up with it.
                let of = |doubt: &Doubt| matches!(&doubt.change, StoreChange::Bucket(of, _) if of == bucket);
                state.doubts.retain(|doubt| !of(doubt));
            }
            StoreChange::Catalog { removed, .. } => {
                state.damaged.retain(|bucket| !removed.contains(bucket));
            }
            _ => {}
        }
        state.apply(&change);
    }

    /// Records that a change was refused, before it had any effect.
    pub(super) fn refused(&self, number: u64) {
        self.state().doubts.retain(|doubt| doubt.number != number);
    }

    /// Records that the store has failed in a change.
    pub(super) fn failed(&self, number: u64) {
        let mut state = self.state();
        let mut doubts = state.doubts.iter_mut();
        if let Some(doubt) = doubts.find(|doubt| doubt.number == number) {
            doubt.has_failed = true;
        }
    }

    /// Compares the contents of a store after its opening with those that it must have, and continues from there. `may_be_damaged` means
    /// that the disk has a wrong bit: a damaged bucket is then not read, and its expected contents stay.
    pub(super) fn reconcile(&self, found: &Found, may_be_damaged: bool) {
        let mut state = self.state();
        let is_damaged = |doubt: &Doubt| matches!(&doubt.change, StoreChange::Bucket(of, _) if found.damaged.contains_key(of));
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

    /// The contents that the store must have; `None` while a change is in doubt, or a bucket is damaged.
    pub(super) fn known(&self) -> Option<Known> {
        let state = self.state();
        let is_certain = state.doubts.is_empty() && state.damaged.is_empty();
        is_certain.then(|| state.known.clone())
    }

    /// The vbuckets that lose mutations by a return to an earlier moment, and their ends at that moment.
    pub(super) fn lost_since(&self, known: &Known) -> Vec<(BucketId, VbucketId, Seqno)> {
        let lost = self.changed_since(known).into_iter().filter(|changed| changed.is_loss);
        lost.map(|changed| (changed.bucket, changed.vbucket, changed.kept)).collect()
    }

    /// The vbuckets whose histories a return to an earlier moment changes.
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

    /// Returns to an earlier moment. Later changes become a lost history.
    pub(super) fn go_back(&self, known: &Known) {
        let mut state = self.state();
        state.doubts.clear();
        state.damaged.clear();
        let buckets: Vec<BucketId> = state.known.buckets.keys().copied().collect();
        buckets.into_iter().for_each(|bucket| state.keep_history(bucket));
        state.known = known.clone();
    }

    /// Loses everything: the disk was replaced.
    pub fn lose_all(&self) {
        self.go_back(&Known::default());
        self.tell_loss(false);
    }

    /// True if a loss was reported to the projector that its operator has not accepted.
    pub fn is_told_of_loss(&self) -> bool {
        self.state().is_told_of_loss
    }

    /// Records whether a loss was reported to the projector that its operator has not accepted.
    pub fn tell_loss(&self, is_told: bool) {
        let mut state = self.state();
        if is_told && !state.is_told_of_loss {
            state.count("losses that a projector was told of");
        }
        state.is_told_of_loss = is_told;
    }

    /// Takes the violations so far.
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.state().violations)
    }

    /// Counts of what has happened, by name.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.state().counts.clone()
    }
}

/// True if two changes are of the same bucket, or both of the source's manifest.
fn is_of_same(one: &StoreChange, other: &StoreChange) -> bool {
    let bucket = |change: &StoreChange| match change {
        StoreChange::Bucket(bucket, _) => Some(*bucket),
        StoreChange::Catalog { .. } | StoreChange::Ids(_) => None,
    };
    bucket(one) == bucket(other)
}
