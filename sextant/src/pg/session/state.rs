//! The part of a session that statements read and change: log-in, settings, transaction, and
//! notices.

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
use crate::flow::{MemoryBudget, StatementPlace, Work};
use crate::pg::message::error::{Notice, WireError, WireResult};
use crate::principal::Principal;
use crate::sql::ast::{Admin, Select, Statement};
use crate::sql::audited;
use crate::sql::error::unsupported;
use crate::sql::plan::{Plan, Relation, ResolvedSelect, resolve};
use crate::sql::remarks::Remarks;
use crate::sql::texts::{LONG_NODES, is_long};

/// The time limit of a scan until its epoch is available and its nodes answer, in milliseconds.
/// It is independent of `statement_timeout`, which interrupts the statement from outside. The
/// error therefore always names the time-out that has passed.
pub(in crate::pg) const SERVE_TIMEOUT_MS: u64 = 10_000;

/// The log-in of a session, which is checked again with each statement.
pub(in crate::pg) struct Login {
    pub(in crate::pg) doors: Arc<LoginPolicy>,
    pub(in crate::pg) principal: Principal,
    /// A receiver of changes of the users; `None` if clients are trusted.
    changes: Option<watch::Receiver<u64>>,
}

impl Login {
    /// Returns the log-in of a principal by a login policy.
    pub(in crate::pg) fn new(doors: &Arc<LoginPolicy>, principal: Principal) -> Self {
        let mut changes = doors.changes();
        // A change may have arrived since the log-in.
        changes.iter_mut().for_each(watch::Receiver::mark_changed);
        Self { doors: Arc::clone(doors), principal, changes }
    }

    /// Waits until the user is dropped or gets another password. Returns the error that then ends
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

    /// Obtains the permission to run a statement, within the limits of clients.
    pub(in crate::pg) fn statement(&self, statement: &Statement) -> Result<StatementPlace> {
        let work = match ends_transaction(statement) {
            true => Work::EndOfTransaction,
            false => Work::Statement,
        };
        self.doors.statement(&self.principal, work)
    }

    /// Returns an error, which ends the session, if its user was dropped or has got another
    /// password.
    pub(in crate::pg) fn check(&self) -> WireResult<()> {
        self.doors.check(&self.principal).map_err(|error| WireError::from(error).fatal())
    }
}

/// The part of a session that statements read and change.
pub(in crate::pg) struct SessionState {
    pub(in crate::pg) env: Env,
    pub(in crate::pg) access: Access,
    /// The samples of indexes, which all sessions of this process share.
    pub(in crate::pg) samples: Arc<Samples>,
    pub(in crate::pg) login: Login,
    pub(in crate::pg) settings: Settings,
    pub(in crate::pg) transaction: Transaction,
    /// The statements that were executed since the end of the last transaction.
    pub(in crate::pg) block: Block,
    pub(in crate::pg) database: String,
    pub(in crate::pg) user: String,
    pub(in crate::pg) process: i32,
    /// The notices that are sent to the client before the outcome of the statement.
    pub(in crate::pg) notices: Vec<Notice>,
    /// The remarks about the running statement, which are sent to the client meanwhile.
    pub(in crate::pg) remarks: Remarks,
}

impl SessionState {
    /// Adds notices about settings in the start-up packet that have no effect.
    pub(in crate::pg) fn warn_of_settings(&mut self, warnings: Vec<String>) {
        self.notices.extend(warnings.into_iter().map(|text| Notice::warning("42704", text)));
    }

    /// Returns the budget for the memory of the session's texts and large messages.
    pub(in crate::pg) fn memory(&self) -> MemoryBudget {
        self.login.doors.flow().session_memory.of(self.access.principal())
    }

    /// Returns the resolved names of a SELECT. Uses the stored ones if they are valid; otherwise
    /// resolves the names again.
    pub(in crate::pg) async fn resolve(
        &self,
        select: &Select,
        kept: &ResolvedNames,
    ) -> Result<Arc<ResolvedSelect>> {
        let catalog = self.access.catalog();
        let index = |id| self.generation_to_read(catalog.indexes.get(&id)?, &catalog).ok();
        let bucket =
            |id| self.bucket_to_read(catalog.buckets.get(&catalog.current_bucket_of(id))?).ok();
        if let Some(resolved) = kept.still_valid(&catalog, index, bucket) {
            return Ok(resolved);
        }
        let relation = self.relation(select).await?;
        if !is_long(select) {
            let resolved = Arc::new(resolve(select, relation.as_ref())?);
            kept.store(relation, &resolved);
            return Ok(resolved);
        }
        let select = select.clone();
        let resolved = self.env.blocking(move || resolve(&select, relation.as_ref())).await?;
        Ok(Arc::new(resolved))
    }

    /// Returns the plan of a SELECT, which is not executed now.
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

    /// Returns the index or bucket that a SELECT reads.
    async fn relation(&self, select: &Select) -> Result<Option<Relation>> {
        let Some(name) = &select.from else { return Ok(None) };
        Ok(Some(match self.access.relation(name).await? {
            Relation::Index(shown) => {
                Relation::Index(self.generation_to_read(&shown, &self.access.catalog())?)
            }
            Relation::Bucket(shown) => Relation::Bucket(self.bucket_to_read(&shown)?),
        }))
    }

    /// Returns the bucket that the session reads for a bucket. For a data set, this is its
    /// current version, or in a transaction the version that was current at the beginning.
    fn bucket_to_read(&self, shown: &Arc<BucketInfo>) -> Result<Arc<BucketInfo>> {
        match &self.transaction {
            Transaction::Open(open) => open.buckets.bucket_to_read(shown, &self.access.catalog()),
            _ => Ok(Arc::clone(shown)),
        }
    }

    /// Returns the generation of an index that the session reads: the serving one, or in a
    /// transaction the one that served at its beginning.
    fn generation_to_read(
        &self,
        shown: &Arc<IndexInfo>,
        catalog: &Catalog,
    ) -> Result<Arc<IndexInfo>> {
        match &self.transaction {
            Transaction::Open(open) => open.buckets.generation_to_read(shown, catalog),
            _ => Ok(Arc::clone(shown)),
        }
    }

    /// Returns the bucket with a name, for writes. Returns an error if an index has the name.
    pub(in crate::pg) async fn bucket(&self, name: &str) -> Result<Arc<BucketInfo>> {
        match self.access.relation(name).await? {
            Relation::Bucket(bucket) if bucket.source == SourceKind::Files => {
                Err(not_writable_error(name))
            }
            Relation::Bucket(bucket) => Ok(bucket),
            Relation::Index(index) => Err(unsupported(
                format!("{name} is an index"),
                format!("documents are written to its bucket, {}", index.spec.bucket),
            )),
        }
    }
}

/// Returns the error for a write into a bucket that does not accept writes of sessions.
fn not_writable_error(bucket: &str) -> Error {
    unsupported(
        format!("bucket {bucket} is loaded from files and takes no writes"),
        "ALTER BUCKET … LOAD VERSION replaces all of its documents",
    )
}

/// Returns true if a statement ends a transaction, and therefore releases its resources.
pub(in crate::pg) fn ends_transaction(statement: &Statement) -> bool {
    matches!(statement, Statement::Commit | Statement::Rollback | Statement::RollbackTo(_))
}

/// Returns true if the end of an interrupted statement should be awaited, because it changes
/// something and ends soon. Returns false for statements that wait for a build (CREATE INDEX,
/// BUILD INDEX, ALTER INDEX, REINDEX), for LOAD VERSION, and for REMOVE NODE … WAIT.
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

/// Returns true if a statement changes something that other sessions see.
pub(super) fn writes(statement: &Statement) -> bool {
    // The audit lists all changes of other things than documents.
    writes_documents(statement) || audited::kind(statement).is_some()
}

/// Returns true if a statement changes documents.
pub(super) fn writes_documents(statement: &Statement) -> bool {
    matches!(statement, Statement::Insert(_) | Statement::Delete { .. } | Statement::CopyIn { .. })
}
