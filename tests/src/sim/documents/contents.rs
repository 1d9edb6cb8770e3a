//! A model of a bucket's contents, which applies one change after another and has complete logs in
//! memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use projector::testing::{BucketRecord, LogExtent, Mutation, StoredDocument, entry_bytes};
use proto::model::commits::TransactionEvent;
use proto::model::history::{Branches, branch_of};
use proto::model::ids::{Seqno, VbucketId, vbucket_of};
use proto::rpc::mutation::MutationKind;

/// The mutations of each vbucket, from seqno 1 on.
pub type Log = Vec<Vec<Arc<Mutation>>>;

/// A change of a bucket, which is stored completely or not at all.
#[derive(Clone, Debug)]
pub enum Change {
    Commit {
        mutations: Vec<Arc<Mutation>>,
        record: Option<BucketRecord>,
        commits: Vec<TransactionEvent>,
    },
    Record(BucketRecord),
    Rewind {
        record: BucketRecord,
        to: Vec<(VbucketId, Seqno)>,
    },
    Purge(Vec<(VbucketId, Seqno)>),
    BeginPurged {
        record: BucketRecord,
        vbucket: VbucketId,
        purged: Seqno,
    },
    Documents(Vec<StoredDocument>),
    Remove {
        record: BucketRecord,
        vbucket: VbucketId,
    },
    /// The recreation of a damaged bucket, empty.
    Anew(BucketRecord),
}

impl Change {
    /// True if the change may end a history.
    pub(super) fn ends_history(&self, before: &[Branches]) -> bool {
        match self {
            Self::Record(record) => record.branches != before,
            Self::Rewind { .. } | Self::Anew(_) => true,
            Self::Remove { record, .. } => record.info.source.is_only_copy(),
            _ => false,
        }
    }
}

/// The contents of a bucket.
#[derive(Clone)]
pub struct Contents {
    pub(super) record: BucketRecord,
    pub(super) documents: BTreeMap<String, (Seqno, Bytes)>,
    /// All mutations of each vbucket, including purged ones.
    pub(super) log: Log,
    /// The last purged mutation of each vbucket.
    pub(super) purged: Vec<Seqno>,
    /// The last mutation of each vbucket that was never stored here, because the vbucket was copied
    /// by its documents. The log has placeholders up to it.
    pub(super) absent: Vec<Seqno>,
}

impl Contents {
    pub(super) fn new(record: BucketRecord) -> Self {
        let log: Log = vec![Vec::new(); usize::from(record.info.vbuckets)];
        let none = vec![Seqno(0); log.len()];
        Self { record, documents: BTreeMap::new(), log, purged: none.clone(), absent: none }
    }

    /// Applies a change; the error tells why the change does not fit the contents.
    pub(super) fn apply(&mut self, change: &Change) -> Result<(), String> {
        match change {
            Change::Commit { mutations, record, commits } => {
                self.replace_record(record.as_ref());
                commits.iter().for_each(|event| self.record.commits.apply_event(event));
                mutations.iter().try_for_each(|mutation| self.append(mutation))
            }
            Change::Record(record) => {
                self.replace_record(Some(record));
                Ok(())
            }
            Change::Rewind { record, to } => {
                self.replace_record(Some(record));
                to.iter().for_each(|(vbucket, to)| {
                    self.record.commits.remove_lost_commits(*vbucket, *to)
                });
                to.iter().try_for_each(|(vbucket, to)| self.rewind(*vbucket, *to))
            }
            Change::Purge(to) => {
                for (vbucket, to) in to {
                    let at = usize::from(vbucket.0);
                    let to = Seqno(to.0.min(self.log[at].len() as u64));
                    self.purged[at] = self.purged[at].max(to);
                }
                Ok(())
            }
            Change::BeginPurged { record, vbucket, purged } => {
                self.replace_record(Some(record));
                self.begin_purged(*vbucket, *purged)
            }
            Change::Documents(documents) => {
                let stored = documents.iter().map(|document| {
                    (document.id.clone(), (document.seqno, document.document.clone()))
                });
                self.documents.extend(stored);
                Ok(())
            }
            Change::Remove { record, vbucket } => {
                self.replace_record(Some(record));
                self.record.commits.remove_lost_commits(*vbucket, Seqno(0));
                self.remove(*vbucket);
                Ok(())
            }
            Change::Anew(record) => {
                *self = Self::new(record.clone());
                Ok(())
            }
        }
    }

    fn replace_record(&mut self, record: Option<&BucketRecord>) {
        if let Some(record) = record {
            self.record = record.clone();
        }
    }

    fn append(&mut self, mutation: &Arc<Mutation>) -> Result<(), String> {
        let log = &mut self.log[usize::from(mutation.vbucket.0)];
        if mutation.seqno.0 != log.len() as u64 + 1 {
            return Err(format!("{mutation:?} does not follow seqno {}", log.len()));
        }
        log.push(Arc::clone(mutation));
        self.show(mutation);
        Ok(())
    }

    /// Makes a mutation the newest state of its document.
    fn show(&mut self, mutation: &Mutation) {
        match mutation.kind {
            MutationKind::Upsert => {
                let state = (mutation.seqno, mutation.document.clone());
                self.documents.insert(mutation.id.to_string(), state);
            }
            MutationKind::Deletion => drop(self.documents.remove(&*mutation.id)),
        }
    }

    fn rewind(&mut self, vbucket: VbucketId, to: Seqno) -> Result<(), String> {
        let at = usize::from(vbucket.0);
        if to.0 == 0 {
            self.remove(vbucket);
            return Ok(());
        }
        if to.0 >= self.log[at].len() as u64 {
            return Ok(());
        }
        let beyond = self.log[at].split_off(to.0 as usize);
        let kept = self.log[at].clone();
        for id in beyond.iter().map(|mutation| &mutation.id) {
            let known = kept.iter().skip(self.absent[at].0 as usize);
            match known.rev().find(|mutation| mutation.id == *id) {
                Some(was) => self.show(was),
                None if self.absent[at].0 > 0 => {
                    return Err(format!("nothing tells what {id} was at seqno {to}"));
                }
                None => drop(self.documents.remove(&**id)),
            }
        }
        self.purged[at] = self.purged[at].min(to);
        Ok(())
    }

    fn begin_purged(&mut self, vbucket: VbucketId, purged: Seqno) -> Result<(), String> {
        let at = usize::from(vbucket.0);
        if !self.log[at].is_empty() {
            return Err(format!("vbucket {vbucket} is not empty"));
        }
        let (id, kind) = (Arc::from(""), MutationKind::Deletion);
        let nothing = Arc::new(Mutation::new((vbucket, Seqno(0)), id, kind, Bytes::new()));
        self.log[at] = vec![nothing; purged.0 as usize];
        (self.purged[at], self.absent[at]) = (purged, purged);
        Ok(())
    }

    fn remove(&mut self, vbucket: VbucketId) {
        let (at, vbuckets) = (usize::from(vbucket.0), self.record.info.vbuckets);
        self.documents.retain(|id, _| vbucket_of(id, vbuckets) != vbucket);
        self.log[at].clear();
        (self.purged[at], self.absent[at]) = (Seqno(0), Seqno(0));
    }

    /// Returns the extent of a vbucket's log that the store must report.
    pub(super) fn extent(&self, at: usize) -> LogExtent {
        let (purged, end) = (self.purged[at], Seqno(self.log[at].len() as u64));
        let bytes_to = |to: Seqno| {
            let entries = self.log[at].iter().take(to.0 as usize);
            entries.skip(self.absent[at].0 as usize).map(|m| entry_bytes(m)).sum()
        };
        LogExtent { purged, end, bytes_purged: bytes_to(purged), bytes_end: bytes_to(end) }
    }

    /// Returns the mutations of a vbucket that the store must have.
    pub(super) fn retained(&self, at: usize) -> &[Arc<Mutation>] {
        &self.log[at][self.purged[at].0 as usize..]
    }

    /// Returns the last seqno of a vbucket up to which an older copy has the same history.
    pub(super) fn common_with(&self, older: &Self, vbucket: VbucketId) -> Seqno {
        let at = usize::from(vbucket.0);
        let branches = [&self.record.branches[at], &older.record.branches[at]];
        let end = self.log[at].len().min(older.log[at].len()) as u64;
        let is_common = |seqno: &u64| {
            let [here, there] = branches.map(|branches| branch_of(branches, Seqno(*seqno)));
            here == there
        };
        Seqno((1..=end).rev().find(is_common).unwrap_or_default())
    }
}
