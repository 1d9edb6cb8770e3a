//! The transaction of a session: its savepoints, its definitions, and its statements. The module
//! `transact` executes the statements.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::ids::{BucketId, Epoch, TransactionId, TransactionPlace};
use proto::{Error, ErrorCode, Result};

use super::settings::SavedSettings;
use crate::access::BucketTransaction;
use crate::sql::ParsedStatement;
use crate::sql::ast::Statement;
use crate::sql::transactions::buckets::TransactionBuckets;

/// The maximum memory of a transaction's savepoints, in bytes.
const SAVEPOINT_BYTES_MAX: usize = 4 << 20;
/// The approximate memory of a savepoint without its name, and of each bucket in it, in bytes.
const SAVEPOINT_BYTES: usize = 128;
const PLACE_BYTES: usize = 32;

/// The maximum number of definitions whose names a notice contains.
const NAMED_MAX: usize = 16;

/// The transaction state of a session: none, open, or failed.
pub(in crate::pg) enum Transaction {
    /// The session is in no transaction.
    None,
    /// The session is in a transaction.
    Open(OpenTransaction),
    /// A statement of the transaction has failed.
    Failed(OpenTransaction),
}

/// An open transaction of a session.
#[derive(Default)]
pub(in crate::pg) struct OpenTransaction {
    /// The buckets that the transaction reads and changes.
    pub(in crate::pg) buckets: TransactionBuckets,
    /// The number of the transaction; `None` before the first change.
    pub(super) id: Option<TransactionId>,
    pub(super) savepoints: Savepoints,
    /// True for an implicit transaction, which ends with its query text or at Sync.
    pub(super) is_implicit: bool,
    /// True if the last ROLLBACK TO of the transaction has undone changes.
    pub(super) has_undone: bool,
}

impl OpenTransaction {
    /// Returns true if the transaction has changes.
    pub(super) fn has_written(&self) -> bool {
        self.buckets.changes().any(|(_, changes)| changes.own_changes().is_some())
    }
}

/// The statements since the end of the last transaction. They form an implicit transaction, even
/// before its first write; their writes are in [`Transaction`].
#[derive(Default)]
pub(in crate::pg) struct Block {
    /// True if the running statement is the last one of its query text, or the last one before
    /// Sync.
    pub(in crate::pg) is_last: bool,
    /// True in a query text of several statements.
    pub(in crate::pg) in_text: bool,
    /// True after a statement that PostgreSQL's clients expect to be rolled back together with
    /// the others. These are all statements except definitions and settings.
    pub(in crate::pg) is_mixed: bool,
    /// The number of executed definitions. `named` has the names of the first ones.
    pub(super) defined: usize,
    named: Vec<String>,
}

impl Block {
    /// Records that a statement is executed.
    pub(in crate::pg) fn note(&mut self, statement: &Statement) {
        use Statement::{Catalogue, CopyIn, CopyOut, Delete, Explain, Insert, Select};
        self.is_mixed |= matches!(
            statement,
            Catalogue(_)
                | CopyIn { .. }
                | CopyOut(_)
                | Delete { .. }
                | Explain(_)
                | Insert(_)
                | Select(_)
        );
    }

    /// Records a definition that was executed.
    pub(in crate::pg) fn define(&mut self, parsed: &ParsedStatement) {
        let Some((_, text)) = &parsed.audited else { return };
        self.defined += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(defined_object(&parsed.statement).unwrap_or_else(|| text.to_string()));
        }
    }

    /// Removes the definitions after the first `first` ones. Returns the names of their objects.
    pub(super) fn take_defined(&mut self, first: usize) -> Vec<String> {
        let mut stays = self.named.split_off(first.min(self.named.len()));
        let others = self.defined.saturating_sub(first.max(NAMED_MAX));
        if others > 0 {
            stays.push(format!("the effect of {others} more"));
        }
        self.defined = self.defined.min(first);
        stays
    }

    /// Records that the transaction has ended.
    pub(super) fn end(&mut self) {
        (self.is_mixed, self.defined) = (false, 0);
        self.named.clear();
    }
}

/// Returns the name of the object that a definition has created or changed; `None` for other
/// statements.
fn defined_object(statement: &Statement) -> Option<String> {
    let bucket = |name: &String| format!("bucket \"{name}\"");
    Some(match statement {
        Statement::CreateBucket(create) => bucket(&create.name),
        Statement::CreateDataSet(create) => bucket(&create.name),
        Statement::DropBucket { name, .. } => format!("the removal of bucket \"{name}\""),
        Statement::CreateIndex(create) => format!("index \"{}\"", create.name),
        Statement::DropIndex { name, .. } => format!("the removal of index \"{name}\""),
        _ => return None,
    })
}

/// A savepoint: a position in the changes of each bucket, to which a transaction can be rolled
/// back.
pub(super) struct Savepoint {
    name: String,
    pub(super) places: BTreeMap<BucketId, TransactionPlace>,
    pub(super) settings: SavedSettings,
    /// The number of definitions that were executed before the savepoint.
    pub(super) defined: usize,
    /// The number of savepoints up to this one. If no statements are between several savepoints,
    /// one value represents all of them, because drivers set a savepoint of the same name before
    /// each statement.
    depth: usize,
    /// The memory of all savepoints up to this one, in bytes.
    bytes: usize,
}

/// The savepoints of a transaction, in their order.
#[derive(Default)]
pub(super) struct Savepoints(Vec<Savepoint>);

impl Savepoints {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the number of savepoints.
    pub(super) fn depth(&self) -> usize {
        self.0.last().map_or(0, |last| last.depth)
    }

    /// Sets a savepoint with a name.
    pub(super) fn set(
        &mut self,
        name: &str,
        places: BTreeMap<BucketId, TransactionPlace>,
        (settings, defined): (SavedSettings, usize),
    ) -> Result<()> {
        let last = self.0.last_mut();
        let is_shared = last.as_ref().is_some_and(|last| last.settings.is_same(&settings));
        if let Some(last) = last
            && is_shared
            && last.name == name
            && (&last.places, last.defined) == (&places, defined)
        {
            last.depth += 1;
            return Ok(());
        }
        let of_settings = if is_shared { 0 } else { settings.bytes() };
        let of_places = places.len() * PLACE_BYTES;
        let before = self.0.last().map_or(0, |last| last.bytes);
        let bytes = before + SAVEPOINT_BYTES + name.len() + of_places + of_settings;
        let depth = self.depth() + 1;
        if bytes > SAVEPOINT_BYTES_MAX {
            let what = format!(
                "the {depth} savepoints of this transaction would take {bytes} bytes, the limit is {SAVEPOINT_BYTES_MAX}"
            );
            let hint = "RELEASE those that are not needed any more";
            return Err(Error::new(ErrorCode::OverLimit, what).with_hint(hint));
        }
        let name = name.to_owned();
        self.0.push(Savepoint { name, places, settings, defined, depth, bytes });
        Ok(())
    }

    /// Returns the newest savepoint with a name. Returns an error if there is none.
    pub(super) fn find(&self, name: &str) -> Result<&Savepoint> {
        Ok(&self.0[self.place(name)?])
    }

    /// Removes the savepoints after the newest one with a name.
    pub(super) fn remove_after(&mut self, name: &str) -> Result<()> {
        let at = self.place(name)?;
        self.0.truncate(at + 1);
        Ok(())
    }

    /// Removes the newest savepoint with a name, and the savepoints after it.
    pub(super) fn release(&mut self, name: &str) -> Result<()> {
        let at = self.place(name)?;
        self.0.truncate(at + 1);
        let before = at.checked_sub(1).map_or(0, |before| self.0[before].depth);
        self.0[at].depth -= 1;
        self.0.pop_if(|last| last.depth == before);
        Ok(())
    }

    /// Returns the index of the newest savepoint with a name.
    fn place(&self, name: &str) -> Result<usize> {
        let at = self.0.iter().rposition(|savepoint| savepoint.name == name);
        at.ok_or_else(|| {
            let what = format!("there is no savepoint {name:?} in this transaction");
            Error::new(ErrorCode::NoSavepoint, what)
        })
    }
}

/// The changes of a transaction in one bucket, and the epoch of the bucket that it reads.
pub(in crate::pg) type TransactionChanges = (Arc<dyn BucketTransaction>, Option<Epoch>);
