//! The transaction of a session.
//!
//! A transaction has snapshot isolation. Its first read fixes and leases a *moment*. In each
//! bucket the transaction reads the newest epoch at that moment, together with its own changes.
//! If the transaction may write, the moment covers all writes that were acknowledged before. The
//! moment of a read-only transaction is determined by the session's consistency, if its first
//! read is a scan and the session has not written. Changes are sent at once to the projector of
//! their bucket, which sends them to the indexers. Until COMMIT, only scans of this session see
//! them. COMMIT makes all of them durable, or none. A document that another writer has changed
//! after the epoch makes COMMIT fail with 40001.
//!
//! After a statement has failed, the transaction is *failed*: only statements that end it or
//! return to a savepoint are accepted. A savepoint consists of a position in the transaction's
//! changes and the settings of the session. A transaction that ends without COMMIT is rolled
//! back, also if the connection is lost.
//!
//! Without BEGIN, the statements before one Sync or of one query text are an *implicit*
//! transaction (a [`Block`]). The transaction is opened only by a write that is followed by
//! another statement: a write that is the last statement needs no transaction, and reads before
//! the first write are like single statements. An implicit transaction is like an explicit one,
//! except that an error ends it and that it has no savepoints. BEGIN makes it explicit, including
//! its earlier statements.
//!
//! Definitions are never undone. Definitions are therefore executed at once, and are refused
//! after the transaction has written. At a rollback, a notice names the definitions that remain.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::ids::{BucketId, LocalIndexId, TransactionPlace};
use proto::value::Value;
use proto::{Error, ErrorCode, Result};

use super::floors::{OpenOutcome, leaves_open};
use super::resolved_names::ResolvedNames;
use super::state::{SERVE_TIMEOUT_MS, SessionState, writes, writes_documents};
use super::transaction::{OpenTransaction, Transaction, TransactionChanges};
use crate::access::TransactionView;
use crate::pg::message::error::{Notice, WireError, WireResult};
use crate::principal::Principal;
use crate::sql::ast::{Select, Statement, TransactionModes};
use crate::sql::plan::{IndexPlan, Plan};
use crate::sql::transactions::commit::{Part, commit_all, number_of};

/// The maximum number of attempts to plan the first read of a transaction. The plan is computed
/// again if another version of a data set has become current meanwhile.
const PLANS_MAX: usize = 5;

impl SessionState {
    /// Returns an error for a statement in a failed transaction, unless the statement ends it or
    /// rolls back to a savepoint.
    pub(in crate::pg) fn check_transaction(&self, statement: &Statement) -> WireResult<()> {
        let ends =
            matches!(statement, Statement::Commit | Statement::Rollback | Statement::RollbackTo(_));
        match &self.transaction {
            Transaction::Failed(_) if !ends => Err(WireError::failed_transaction()),
            _ => Ok(()),
        }
    }

    /// Returns an error for a definition in a transaction that has written, because a rollback
    /// would undo only the writes.
    pub(in crate::pg) fn check_definition(&self, statement: &Statement) -> WireResult<()> {
        let is_late = matches!(&self.transaction, Transaction::Open(open) if open.has_written());
        match is_late && writes(statement) && !writes_documents(statement) {
            true => Err(WireError::late_definition()),
            false => Ok(()),
        }
    }

    /// Returns an error for a write or definition in a read-only transaction.
    pub(in crate::pg) fn check_writes(&self, statement: &Statement) -> Result<()> {
        if !writes(statement) || !self.settings.is_read_only() {
            return Ok(());
        }
        let what = "writes and definitions are refused in a read-only transaction";
        Err(Error::new(ErrorCode::ReadOnly, what)
            .with_hint("SET default_transaction_read_only = off, and begin the transaction again"))
    }

    /// Begins a statement that may be one of several statements of an implicit transaction.
    /// Settings with `SET LOCAL` apply to all of these statements.
    pub(in crate::pg) fn begin_in_block(&mut self) {
        if !self.settings.has_begun() {
            self.settings.begin();
        }
    }

    /// Records that a statement has failed. An explicit transaction then becomes failed; without
    /// a savepoint its changes are rolled back at once. An implicit transaction ends.
    pub(in crate::pg) fn fail_transaction(&mut self) {
        self.transaction = match std::mem::replace(&mut self.transaction, Transaction::None) {
            Transaction::Open(open) if open.is_implicit => return self.end_transaction(false),
            // Definitions and settings alone run one by one.
            Transaction::None => return self.end_transaction(!self.block.is_mixed),
            Transaction::Open(open) if open.savepoints.is_empty() => {
                Transaction::Failed(OpenTransaction::default())
            }
            Transaction::Open(open) => Transaction::Failed(open),
            other => other,
        };
    }

    /// Executes a statement about transactions or savepoints. Returns the command tag.
    pub(in crate::pg) async fn run_transaction_statement(
        &mut self,
        statement: &Statement,
    ) -> Result<&'static str> {
        match statement {
            Statement::Begin(modes) => self.begin(modes),
            Statement::Commit => {
                self.warn_unless_open();
                self.commit().await
            }
            Statement::Savepoint(name) => self.savepoint(name),
            Statement::RollbackTo(name) => self.rollback_to(name).await,
            Statement::Release(name) => self.release(name),
            _ => {
                self.warn_unless_open();
                self.end_transaction(false);
                Ok("ROLLBACK")
            }
        }
    }

    /// Begins an explicit transaction.
    fn begin(&mut self, modes: &TransactionModes) -> Result<&'static str> {
        match &mut self.transaction {
            // The statements before BEGIN are a part of the transaction. If it fails, they are undone, and no transaction is left.
            Transaction::Open(open) if open.is_implicit => {
                self.set_modes(modes, "transaction")?;
                if let Transaction::Open(open) = &mut self.transaction {
                    open.is_implicit = false;
                }
                return Ok("BEGIN");
            }
            Transaction::None => {
                self.begin_in_block();
                if let Err(error) = self.set_modes(modes, "transaction") {
                    self.fail_transaction();
                    return Err(error);
                }
                self.transaction = Transaction::Open(OpenTransaction::default());
                return Ok("BEGIN");
            }
            _ => {
                let message = "there is already a transaction in progress";
                self.notices.push(Notice::warning("25001", message));
            }
        }
        self.set_modes(modes, "transaction")?;
        Ok("BEGIN")
    }

    /// Returns true if the session is not in an explicit transaction.
    pub(in crate::pg) fn is_outside_transaction(&self) -> bool {
        match &self.transaction {
            Transaction::None => true,
            Transaction::Open(open) => open.is_implicit,
            Transaction::Failed(_) => false,
        }
    }

    /// Adds a warning if no transaction is open.
    fn warn_unless_open(&mut self) {
        if self.is_outside_transaction() {
            let message = "there is no transaction in progress";
            self.notices.push(Notice::warning("25P01", message));
        }
    }

    /// Ends the transaction. With `commit`, changes of settings remain; otherwise they are
    /// undone, and a notice names the definitions that remain.
    fn end_transaction(&mut self, commit: bool) {
        self.transaction = Transaction::None;
        self.settings.end(commit);
        if !commit {
            self.warn_of_definitions(0);
        }
        self.block.end();
    }

    /// Adds a notice that a rollback does not undo the definitions of the transaction, without
    /// the first `first` ones.
    fn warn_of_definitions(&mut self, first: usize) {
        for stays in self.block.take_defined(first) {
            let message = format!("{stays} stays: definitions are not rolled back");
            self.notices.push(Notice::warning("01000", message));
        }
    }

    /// Commits the implicit transaction, if there is one.
    pub(in crate::pg) async fn end_block(&mut self) -> Result<()> {
        match self.is_outside_transaction() {
            true => self.commit().await.map(drop),
            false => Ok(()),
        }
    }

    /// Commits the open transaction.
    async fn commit(&mut self) -> Result<&'static str> {
        if let Transaction::Open(open) = &mut self.transaction
            && let Err(error) = open.buckets.pin_changed().await
        {
            self.end_transaction(false);
            return Err(error);
        }
        let parts = match &self.transaction {
            Transaction::Failed(_) => {
                self.end_transaction(false);
                return Ok("ROLLBACK");
            }
            Transaction::Open(open) => open.buckets.parts(),
            Transaction::None => Vec::new(),
        };
        if !parts.is_empty() {
            // If the wait is interrupted, the outcome is unknown, and no rollback to a savepoint
            // is possible.
            self.forget_savepoints();
            // Changes after a savepoint may belong to a new transaction with another number.
            self.settings.transaction = number_of(&parts).or(self.settings.transaction);
            if let Err(error) = self.commit_parts(parts).await {
                self.end_transaction(false);
                return Err(error);
            }
        }
        self.end_transaction(true);
        Ok("COMMIT")
    }

    /// Commits the changes in several buckets and records the writes. If a bucket does not
    /// answer, the outcome there remains unknown.
    async fn commit_parts(&mut self, parts: Vec<Part>) -> Result<()> {
        let floors = &mut self.settings.floors;
        let written =
            parts.iter().filter(|part| part.changes.own_changes().is_some()).map(Part::bucket);
        let mut begun: BTreeMap<BucketId, OpenOutcome> =
            written.map(|bucket| (bucket, floors.begin_write(bucket))).collect();
        let committed = commit_all(parts).await;
        let known: Vec<BucketId> = match &committed {
            Ok(replies) => replies.iter().map(|reply| reply.position.bucket).collect(),
            Err(error) if leaves_open(error) => Vec::new(),
            Err(_) => begun.keys().copied().collect(),
        };
        for bucket in known {
            if let Some(before) = begun.remove(&bucket) {
                self.settings.floors.end_write(bucket, before);
            }
        }
        committed?.into_iter().for_each(|reply| self.settings.note_write(reply.position));
        Ok(())
    }

    fn forget_savepoints(&mut self) {
        if let Transaction::Open(open) = &mut self.transaction {
            open.savepoints.clear();
        }
    }

    /// Sets a savepoint.
    fn savepoint(&mut self, name: &str) -> Result<&'static str> {
        let values = (self.settings.savepoint(), self.block.defined);
        let Some(open) = self.explicit() else { return Err(no_transaction("SAVEPOINT")) };
        let places = open.buckets.places();
        open.savepoints.set(name, places, values)?;
        Ok("SAVEPOINT")
    }

    /// Returns the explicit transaction, if there is one.
    fn explicit(&mut self) -> Option<&mut OpenTransaction> {
        match &mut self.transaction {
            Transaction::Open(open) | Transaction::Failed(open) if !open.is_implicit => Some(open),
            _ => None,
        }
    }

    /// Rolls back to a savepoint.
    async fn rollback_to(&mut self, name: &str) -> Result<&'static str> {
        let Some(open) = self.explicit() else { return Err(no_transaction("ROLLBACK TO")) };
        let savepoint = open.savepoints.find(name)?;
        let (settings, defined) = (savepoint.settings.clone(), savepoint.defined);
        let places = savepoint.places.clone();
        open.has_undone = open.buckets.places() != places;
        let changed: Vec<_> = open.buckets.changes().map(|(b, own)| (b, Arc::clone(own))).collect();
        for (bucket, changes) in changed {
            match places.get(&bucket).copied().unwrap_or_default() {
                // Another transaction replaces the changes, so that none of them can arrive late.
                TransactionPlace(0) => {
                    open.buckets.forget_changes(bucket);
                    open.id = None;
                }
                // A failed statement may have left changes that the session does not know.
                place => changes.rollback_to(place).await?,
            }
        }
        open.savepoints.remove_after(name)?;
        self.settings.rollback_to(&settings);
        self.warn_of_definitions(defined);
        self.transaction = match std::mem::replace(&mut self.transaction, Transaction::None) {
            Transaction::Failed(open) => Transaction::Open(open),
            other => other,
        };
        Ok("ROLLBACK")
    }

    /// Removes a savepoint.
    fn release(&mut self, name: &str) -> Result<&'static str> {
        let Some(open) = self.explicit() else { return Err(no_transaction("RELEASE")) };
        open.savepoints.release(name)?;
        Ok("RELEASE")
    }

    /// Returns the number of savepoints of the transaction, and whether its last ROLLBACK TO has
    /// undone changes.
    pub(in crate::pg) fn savepoints(&self) -> (usize, bool) {
        match &self.transaction {
            Transaction::Open(open) | Transaction::Failed(open) => {
                (open.savepoints.depth(), open.has_undone)
            }
            Transaction::None => (0, false),
        }
    }

    /// Returns the open transaction's changes in a bucket, to which a statement can add changes;
    /// `None` for a statement outside of a transaction. For a write that another statement
    /// follows, opens the implicit transaction.
    pub(in crate::pg) fn changes_to_write(
        &mut self,
        bucket: &Arc<BucketInfo>,
    ) -> Result<Option<TransactionChanges>> {
        if matches!(self.transaction, Transaction::None) && !self.block.is_last {
            let implicit = OpenTransaction { is_implicit: true, ..OpenTransaction::default() };
            self.transaction = Transaction::Open(implicit);
        }
        let Transaction::Open(open) = &mut self.transaction else { return Ok(None) };
        let Self { access, user, process, settings, .. } = self;
        let id = &mut open.id;
        let begin = || {
            let owner = match access.principal() {
                // The name is only what the client calls itself.
                Principal::Trusted => format!("user {user}, session {process}"),
                user => format!("{user}, session {process}"),
            };
            let begun = access.writer(bucket)?.begin(&owner, *id)?;
            *id = Some(begun.id());
            settings.transaction = *id;
            Ok(begun)
        };
        let changes = open.buckets.changes_or_begin(bucket.id, begin)?;
        Ok(Some((changes, open.buckets.snapshot(bucket.id))))
    }

    /// Returns the plan of a SELECT that is executed now. The first read of a transaction fixes
    /// the catalog in which its names are resolved, and this catalog may be newer than that of
    /// the plan. If a name means another object in it, the plan is computed again.
    pub(in crate::pg) async fn plan_read(
        &mut self,
        select: &Select,
        values: &[Value],
        kept: &ResolvedNames,
    ) -> Result<Plan> {
        let mut plan = self.plan(select, values, kept).await?;
        for _ in 0..PLANS_MAX {
            let is_first =
                matches!(&self.transaction, Transaction::Open(open) if !open.buckets.has_moment());
            match &plan {
                Plan::Index(plan) if is_first => drop(self.scan_view(plan).await?),
                Plan::Documents(plan) if is_first => drop(self.view(plan.bucket.id).await?),
                _ => return Ok(plan),
            }
            let again = self.plan(select, values, kept).await?;
            if relation_of(&again) == relation_of(&plan) {
                return Ok(again);
            }
            if let Transaction::Open(open) = &mut self.transaction {
                open.buckets.unfix_moment();
            }
            plan = again;
        }
        Err(Error::unavailable("the indexes have changed again and again while a read was planned"))
    }

    /// Returns what the open transaction sees of a bucket whose documents it reads by id; `None`
    /// outside of a transaction.
    pub(in crate::pg) async fn view(
        &mut self,
        bucket: BucketId,
    ) -> Result<Option<TransactionView>> {
        let Transaction::Open(open) = &mut self.transaction else { return Ok(None) };
        open.buckets.pin(&self.access, bucket).await?;
        open.buckets.view(bucket).map(Some)
    }

    /// Returns what the open transaction sees of a bucket that it reads through an index; `None`
    /// outside of a transaction. A read-only transaction uses the session's consistency. If the
    /// session has written, its writes must be visible in all buckets, so the newest epochs are
    /// read instead.
    pub(in crate::pg) async fn scan_view(
        &mut self,
        plan: &IndexPlan,
    ) -> Result<Option<TransactionView>> {
        let bucket = plan.index.bucket;
        if let Transaction::Open(open) = &mut self.transaction
            && !open.buckets.has_moment()
            && self.settings.is_read_only()
            // A rollback to a savepoint may restore settings with which the transaction is not
            // read-only.
            && open.savepoints.depth() == 0
            && let Some(consistency) = self.settings.consistency_at_first(bucket)
        {
            let index = plan.index.local_id();
            let pin = self.access.pin(index, &consistency, SERVE_TIMEOUT_MS).await?;
            open.buckets.fix_moment(bucket, pin);
        }
        self.view(bucket).await
    }
}

/// Returns the bucket that a plan reads, and the generation of its index if there is one.
pub(in crate::pg) fn relation_of(plan: &Plan) -> Option<(BucketId, Option<LocalIndexId>)> {
    match plan {
        Plan::Index(plan) => Some((plan.index.bucket, Some(plan.index.local_id()))),
        Plan::Documents(plan) => Some((plan.bucket.id, None)),
        Plan::Constant(_) => None,
    }
}

/// Returns the error for a statement that needs a transaction.
fn no_transaction(what: &str) -> Error {
    let what = format!("{what} can only be used in a transaction");
    Error::new(ErrorCode::NoTransaction, what).with_hint("BEGIN begins one")
}
