//! The state of a session that statements read and change.

use std::sync::Arc;

use proto::env::Env;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::catalog::Catalog;
use proto::model::index::IndexInfo;
use proto::value::Value;
use proto::{Error, Result};
use tokio::sync::watch;

use super::resolved_names::ResolvedNames;
use super::settings::Settings;
use super::transaction::{Block, Transaction};
use crate::access::Access;
use crate::auth::login_policy::LoginPolicy;
use crate::backend::Samples;
use crate::flow::{RoomBudget, StatementPlace, Work};
use crate::pg::message::error::{Notice, WireError, WireResult};
use crate::principal::Principal;
use crate::sql::ast::{Admin, Select, Statement};
use crate::sql::audited;
use crate::sql::error::unsupported;
use crate::sql::plan::{Plan, Relation, ResolvedSelect, resolve};
use crate::sql::remarks::Remarks;
use crate::sql::texts::{LONG_NODES, is_long};

/// The time limit of a scan until its epoch is available and its nodes answer, in milliseconds. It
/// does not depend on `statement_timeout`, which interrupts the statement from outside, so that the
/// error always names the time-out that has passed.
pub(in crate::pg) const SERVE_TIMEOUT_MS: u64 = 10_000;

/// The log-in of a session, and the checks of it.
pub(in crate::pg) struct Login {
    pub(in crate::pg) doors: Arc<LoginPolicy>,
    pub(in crate::pg) principal: Principal,
    /// A receiver of changes of the users; `None` if clients are trusted.
    changes: Option<watch::Receiver<u64>>,
}

impl Login {
    pub(in crate::pg) fn new(doors: &Arc<LoginPolicy>, principal: Principal) -> Self {
        let mut changes = doors.changes();
        // A change may have arrived since the log-in.
        changes.iter_mut().for_each(watch::Receiver::mark_changed);
        Self { doors: Arc::clone(doors), principal, changes }
    }

    /// Waits until the user is dropped or gets another password; returns the error that then ends
    /// an idle session.
    pub(in crate::pg) async fn withdrawn(&mut self) -> WireError {
        let Some(changes) = &mut self.changes else { return std::future::pending().await };
        loop {
            if changes.changed().await.is_err() {
                // The users cannot change any more.
                return std::future::pending().await;
            }
            let valid = self.doors.check(&self.principal);
            if let Err(error) = valid {
                return WireError::from(error).fatal();
            }
        }
    }

    /// Takes a place for a statement.
    pub(in crate::pg) fn statement(&self, statement: &Statement) -> Result<StatementPlace> {
        let work = match ends_transaction(statement) {
            true => Work::EndOfTransaction,
            false => Work::Statement,
        };
        self.doors.statement(&self.principal, work)
    }

    /// Returns an error that ends the session if its user was dropped or has got another password.
    pub(in crate::pg) fn check(&self) -> WireResult<()> {
        self.doors.check(&self.principal).map_err(|error| WireError::from(error).fatal())
    }
}

/// The state of a session that statements read and change.
pub(in crate::pg) struct SessionState {
    pub(in crate::pg) env: Env,
    pub(in crate::pg) access: Access,
    /// The samples of this process.
    pub(in crate::pg) samples: Arc<Samples>,
    pub(in crate::pg) login: Login,
    pub(in crate::pg) settings: Settings,
    pub(in crate::pg) transaction: Transaction,
    /// The statements since the end of the last transaction.
    pub(in crate::pg) block: Block,
    pub(in crate::pg) database: String,
    pub(in crate::pg) user: String,
    pub(in crate::pg) process: i32,
    /// The notices to send to the client before the outcome of the statement.
    pub(in crate::pg) notices: Vec<Notice>,
    /// The remarks for the client that arrive while the statement runs.
    pub(in crate::pg) remarks: Remarks,
}

impl SessionState {
    /// Adds notices about settings in the start-up packet that have no effect.
    pub(in crate::pg) fn warn_of_settings(&mut self, warnings: Vec<String>) {
        self.notices.extend(warnings.into_iter().map(|text| Notice::warning("42704", text)));
    }

    /// Returns the budget for the memory of the session's texts and large messages.
    pub(in crate::pg) fn memory(&self) -> RoomBudget {
        self.login.doors.flow().session_memory.of(self.access.principal())
    }

    /// Returns the resolved names of a SELECT: the stored ones if they are valid, otherwise new
    /// ones.
    pub(in crate::pg) async fn resolve(
        &self,
        select: &Select,
        kept: &ResolvedNames,
    ) -> Result<Arc<ResolvedSelect>> {
        let catalog = self.access.catalog();
        let index = |id| self.goes_on_in(catalog.indexes.get(&id)?, &catalog).ok();
        let bucket = |id| self.reads_in(catalog.buckets.get(&catalog.current_of(id))?).ok();
        if let Some(resolved) = kept.present(&catalog, index, bucket) {
            return Ok(resolved);
        }
        let relation = self.relation(select).await?;
        if !is_long(select) {
            let resolved = Arc::new(resolve(select, relation.as_ref())?);
            kept.keep(relation, &resolved);
            return Ok(resolved);
        }
        let select = select.clone();
        let resolved = self.env.blocking(move || resolve(&select, relation.as_ref())).await?;
        Ok(Arc::new(resolved))
    }

    /// Returns the plan of a SELECT.
    pub(in crate::pg) async fn plan(
        &self,
        select: &Select,
        values: &[Value],
        kept: &ResolvedNames,
    ) -> Result<Plan> {
        let resolved = self.resolve(select, kept).await?;
        if !is_long(select) && values.len() <= LONG_NODES {
            return resolved.plan(values);
        }
        let values = values.to_vec();
        self.env.blocking(move || resolved.plan(&values)).await
    }

    async fn relation(&self, select: &Select) -> Result<Option<Relation>> {
        let Some(name) = &select.from else { return Ok(None) };
        Ok(Some(match self.access.relation(name).await? {
            Relation::Index(shown) => {
                Relation::Index(self.goes_on_in(&shown, &self.access.catalog())?)
            }
            Relation::Bucket(shown) => Relation::Bucket(self.reads_in(&shown)?),
        }))
    }

    /// Returns the bucket that the session reads under a name: the present one, or in a transaction
    /// the one at its beginning.
    fn reads_in(&self, shown: &Arc<BucketInfo>) -> Result<Arc<BucketInfo>> {
        match &self.transaction {
            Transaction::Open(open) => open.buckets.reads_in(shown, &self.access.catalog()),
            _ => Ok(Arc::clone(shown)),
        }
    }

    /// Returns the generation of an index that the session reads: the serving one, or in a
    /// transaction the one at its beginning.
    fn goes_on_in(&self, shown: &Arc<IndexInfo>, catalog: &Catalog) -> Result<Arc<IndexInfo>> {
        match &self.transaction {
            Transaction::Open(open) => open.buckets.goes_on_in(shown, catalog),
            _ => Ok(Arc::clone(shown)),
        }
    }

    /// Returns the bucket of a name, for writes; an error if the name is that of an index.
    pub(in crate::pg) async fn bucket(&self, name: &str) -> Result<Arc<BucketInfo>> {
        match self.access.relation(name).await? {
            Relation::Bucket(bucket) if bucket.source == SourceKind::Files => {
                Err(takes_no_writes(name))
            }
            Relation::Bucket(bucket) => Ok(bucket),
            Relation::Index(index) => Err(unsupported(
                format!("{name} is an index"),
                format!("documents are written to its bucket, {}", index.spec.bucket),
            )),
        }
    }
}

fn takes_no_writes(bucket: &str) -> Error {
    unsupported(
        format!("bucket {bucket} is loaded from files and takes no writes"),
        "ALTER BUCKET … LOAD VERSION replaces all of its documents",
    )
}

/// True if a statement ends a transaction and so releases its resources.
pub(in crate::pg) fn ends_transaction(statement: &Statement) -> bool {
    matches!(statement, Statement::Commit | Statement::Rollback | Statement::RollbackTo(_))
}

/// True if an interrupted statement should be awaited, because it changes something and ends soon.
/// False for CREATE INDEX, BUILD INDEX, ALTER INDEX and REINDEX, which wait for a build, LOAD
/// VERSION, and REMOVE NODE … WAIT.
pub(in crate::pg) fn changes_at_once(statement: &Statement) -> bool {
    let builds = matches!(
        statement,
        Statement::CreateIndex(_)
            | Statement::BuildIndex { .. }
            | Statement::AlterIndex { .. }
            | Statement::LoadVersion { .. }
            | Statement::Admin(Admin::RemoveNode { wait: true, .. })
    );
    (writes(statement) && !builds) || *statement == Statement::Commit
}

/// True if a statement changes something that other sessions see.
pub(super) fn writes(statement: &Statement) -> bool {
    // The audit lists all changes of other things than documents.
    writes_documents(statement) || audited::kind(statement).is_some()
}

/// True if a statement changes documents.
pub(super) fn writes_documents(statement: &Statement) -> bool {
    matches!(statement, Statement::Insert(_) | Statement::Delete { .. } | Statement::CopyIn { .. })
}
