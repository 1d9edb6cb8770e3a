//! The allowed answers of a transaction's statements.

use std::collections::BTreeMap;

use proto::rpc::api::{Write, WriteKind};

use super::running::Running;
use crate::sim::client::reads::{Before, states_between};
use crate::sim::client::session::Session;
use crate::sim::judge::truth::Truth;

/// The writes of a statement, and the transaction's view of the documents before it.
pub(super) struct Expected {
    writes: Vec<Write>,
    /// True for each write whose document exists; `None` if the present state decides.
    exists: Vec<Option<bool>>,
    /// The readable logs of the documents before the statement.
    before: Before,
}

impl Expected {
    /// Returns the expectation of a statement that is about to be sent.
    pub fn new(running: &Running, writes: &[Write], before: Before) -> Self {
        let mut here: BTreeMap<&str, bool> = BTreeMap::new();
        let exists = writes.iter().map(|write| {
            let exists = here.get(&*write.id).copied().or_else(|| running.exists(&write.id));
            here.insert(&write.id, write.kind != WriteKind::Delete);
            exists
        });
        let exists = exists.collect();
        Self { writes: writes.to_vec(), exists, before }
    }

    /// Judges the number of changes that a statement has made; returns a text about a violation.
    pub fn judge_written(&self, affected: u64, truth: &Truth, session: &Session) -> Option<String> {
        let (mut least, mut most) = (0, 0);
        for (n, write) in self.writes.iter().enumerate() {
            let (may_be_there, may_be_absent) = self.may_be(n, truth, session);
            if matches!(write.kind, WriteKind::Insert(_)) && !may_be_absent {
                return Some(format!("took an INSERT of {}, which is there", write.id));
            }
            let is_deletion = write.kind == WriteKind::Delete;
            least += u64::from(!is_deletion || !may_be_absent);
            most += u64::from(!is_deletion || may_be_there);
        }
        let fits = (least..=most).contains(&affected);
        (!fits).then(|| format!("tells {affected} changes, not {least} to {most}"))
    }

    /// Judges a refusal, which requires that one of the inserted documents exists; returns a text
    /// about a violation.
    pub fn judge_refused(&self, truth: &Truth, session: &Session) -> Option<String> {
        let mut inserts = self.writes.iter().enumerate().filter(|(n, write)| {
            matches!(write.kind, WriteKind::Insert(_)) && self.may_be(*n, truth, session).0
        });
        inserts.next().is_none().then(|| "refused, though no inserted document is there".into())
    }

    /// Returns true if the document of a write may have existed, and true if it may have been
    /// absent.
    fn may_be(&self, n: usize, truth: &Truth, session: &Session) -> (bool, bool) {
        let Write { id, .. } = &self.writes[n];
        if let Some(exists) = self.exists[n] {
            return (exists, !exists);
        }
        let states = self.before[n].as_ref();
        match states.and_then(|before| states_between(truth, session, id, before)) {
            Some(states) => (states.iter().any(Option::is_some), states.contains(&None)),
            None => (true, true),
        }
    }
}
