//! Runs statements. The outcome is a command tag, rows to stream, or a COPY.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::expr::{ColumnType, Expr};
use proto::model::bucket::BucketInfo;
use proto::model::ids::BucketId;
use proto::model::moves::RebalanceRequest;
use proto::rpc::api::{Write, WriteKind};
use proto::rpc::scan::Consistency;
use proto::value::Value;
use proto::{Error, ErrorCode, Result};

use super::error::{WireError, WireResult};
use super::settings::Settings;
use super::show;
use super::stream::Rows;
use crate::rows::value::Datum;
use crate::sql::admin;
use crate::sql::ast::{Insert, Select, Show, Statement};
use crate::sql::backend::{Backend, EpochPin};
use crate::sql::ddl;
use crate::sql::error::unsupported;
use crate::sql::plan::{
    ColumnInfo, ConstantPlan, ConstantValue, IndexPlan, ParameterTypes, Plan, Relation, Resolved,
    bind, constant, resolve,
};

/// How long a scan waits for an epoch or a node before it fails. It does not depend on `statement_timeout`, which
/// interrupts the statement from outside: so the error always says which of the two time-outs has passed.
const SERVE_TIMEOUT_MS: u64 = 10_000;

/// The outcome of a statement.
pub(super) enum StatementOutcome {
    /// The statement is done: its command tag, and perhaps a warning.
    Tag(String, Option<(&'static str, &'static str)>),
    /// Rows to stream.
    Rows(Rows),
    /// Rows to stream as COPY … TO STDOUT.
    CopyOut(Rows),
    /// Documents to take from the client.
    CopyIn {
        /// The target.
        bucket: Arc<BucketInfo>,
        /// The field that holds the id.
        id_field: String,
    },
}

/// The description of a prepared statement.
#[derive(Debug, Default)]
pub(super) struct Description {
    /// The types of its parameters.
    pub(super) parameters: Vec<ColumnType>,
    /// The columns of its rows; `None` if it returns none.
    pub(super) columns: Option<Vec<ColumnInfo>>,
}

/// The transaction state of a session.
pub(super) enum Transaction {
    /// The session is in no transaction.
    None,
    /// The session is in a transaction; its scans read these epochs.
    Open(BTreeMap<BucketId, Box<dyn EpochPin>>),
    /// A statement of the transaction has failed.
    Failed,
}

/// The part of a session that statements read and change.
pub(super) struct SessionState {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) settings: Settings,
    pub(super) transaction: Transaction,
    pub(super) database: String,
    pub(super) user: String,
    pub(super) process: i32,
}

impl SessionState {
    /// Refuses all statements but COMMIT and ROLLBACK in a failed transaction.
    pub(super) fn check_transaction(&self, statement: &Statement) -> WireResult<()> {
        match (&self.transaction, statement) {
            (Transaction::Failed, Statement::Commit | Statement::Rollback) => Ok(()),
            (Transaction::Failed, _) => Err(WireError::failed_transaction()),
            _ => Ok(()),
        }
    }

    /// Describes a statement with a number of parameters.
    pub(super) async fn describe(
        &self,
        statement: &Statement,
        parameters: u16,
    ) -> Result<Description> {
        let mut types = ParameterTypes::new(parameters);
        let columns = match statement {
            Statement::Select(select) | Statement::Explain(select) | Statement::CopyOut(select) => {
                let resolved = self.resolve(select).await?;
                let columns = match statement {
                    Statement::Select(_) => Some(resolved.columns()),
                    Statement::Explain(_) => Some(show::explain_columns()),
                    _ => None,
                };
                return Ok(Description {
                    parameters: resolved.parameter_types(parameters),
                    columns,
                });
            }
            Statement::ExplainRebalance(_) => Some(show::explain_columns()),
            Statement::Show(what) => Some(show::columns(what)),
            Statement::Insert(insert) => {
                self.bucket(&insert.bucket).await?;
                types.expect_text(insert.rows.iter().flat_map(|(id, doc)| [id, doc]));
                None
            }
            Statement::Delete { bucket, ids } => {
                self.bucket(bucket).await?;
                types.expect_text(ids);
                None
            }
            // A driver that pipelines a COPY stays in step only if its errors come this early.
            Statement::CopyIn { bucket, .. } => {
                self.bucket(bucket).await?;
                None
            }
            _ => None,
        };
        Ok(Description { parameters: types.finish(), columns })
    }

    /// Runs a statement with the values of its parameters.
    pub(super) async fn run(
        &mut self,
        statement: &Statement,
        values: &[Value],
    ) -> Result<StatementOutcome> {
        if writes(statement) && !matches!(self.transaction, Transaction::None) {
            return Err(unsupported(
                "writes and definitions inside a transaction are not supported",
                "run the statement on its own, with autocommit on; BEGIN … COMMIT is for reads that \
                 see one moment",
            ));
        }
        let done = |tag: &str| Ok(StatementOutcome::Tag(tag.to_owned(), None));
        match statement {
            Statement::Select(select) => {
                self.select(select, values).await.map(StatementOutcome::Rows)
            }
            Statement::CopyOut(select) => {
                let rows = self.select(select, values).await?;
                Ok(StatementOutcome::CopyOut(rows.with_tag("COPY")))
            }
            Statement::Explain(select) => {
                let lines = self.resolve(select).await?.plan(values)?.explain();
                let rows = lines.into_iter().map(|line| vec![Datum::text(line)]).collect();
                Ok(StatementOutcome::Rows(
                    Rows::table(show::explain_columns(), rows).with_fixed_tag("EXPLAIN"),
                ))
            }
            Statement::ExplainRebalance(index) => {
                let request = RebalanceRequest { index: index.clone(), dry_run: true };
                let plan = self.backend.rebalance(request).await?;
                let lines = admin::explain(&self.backend.catalog(), &plan);
                let rows = lines.into_iter().map(|line| vec![Datum::text(line)]).collect();
                Ok(StatementOutcome::Rows(
                    Rows::table(show::explain_columns(), rows).with_fixed_tag("EXPLAIN"),
                ))
            }
            Statement::Admin(statement) => done(&admin::run(&*self.backend, statement).await?),
            Statement::Show(what) => self.show(what).await.map(StatementOutcome::Rows),
            Statement::Insert(insert) => self.insert(insert, values).await,
            Statement::Delete { bucket, ids } => self.delete(bucket, ids, values).await,
            Statement::CopyIn { bucket, id_field } => {
                let bucket = self.bucket(bucket).await?;
                Ok(StatementOutcome::CopyIn { bucket, id_field: id_field.clone() })
            }
            Statement::CreateBucket(_)
            | Statement::DropBucket { .. }
            | Statement::CreateIndex(_)
            | Statement::BuildIndex { .. }
            | Statement::DropIndex { .. } => {
                let tag = ddl::run(&*self.backend, statement).await?;
                done(tag.unwrap_or_default())
            }
            Statement::Set { name, value } => {
                self.settings.set(name, value.as_deref())?;
                done(if value.is_some() { "SET" } else { "RESET" })
            }
            Statement::ResetAll | Statement::DiscardAll => {
                self.settings.reset();
                done(if *statement == Statement::ResetAll { "RESET" } else { "DISCARD ALL" })
            }
            Statement::Nothing { tag } => done(tag),
            Statement::Deallocate(_) => done("DEALLOCATE"),
            Statement::Begin | Statement::Commit | Statement::Rollback => {
                Ok(self.transact(statement))
            }
        }
    }

    fn transact(&mut self, statement: &Statement) -> StatementOutcome {
        let open = !matches!(self.transaction, Transaction::None);
        let (tag, warning) = match statement {
            Statement::Begin if open => {
                ("BEGIN", Some(("25001", "there is already a transaction in progress")))
            }
            Statement::Begin => {
                self.transaction = Transaction::Open(BTreeMap::new());
                ("BEGIN", None)
            }
            _ => {
                let failed = matches!(self.transaction, Transaction::Failed);
                self.transaction = Transaction::None;
                let commit = *statement == Statement::Commit && !failed;
                let tag = if commit { "COMMIT" } else { "ROLLBACK" };
                (tag, (!open).then_some(("25P01", "there is no transaction in progress")))
            }
        };
        StatementOutcome::Tag(tag.to_owned(), warning)
    }

    async fn resolve(&self, select: &Select) -> Result<Resolved> {
        let relation = match &select.from {
            Some(name) => Some(self.backend.relation(name).await?),
            None => None,
        };
        resolve(select, relation.as_ref())
    }

    async fn select(&mut self, select: &Select, values: &[Value]) -> Result<Rows> {
        match self.resolve(select).await?.plan(values)? {
            Plan::Index(plan) => self.scan(*plan).await,
            Plan::Documents(plan) => Ok(Rows::documents(Arc::clone(&self.backend), plan)),
            Plan::Constant(plan) => self.constants(plan),
        }
    }

    async fn scan(&mut self, mut plan: IndexPlan) -> Result<Rows> {
        let bucket = plan.index.bucket;
        let mut consistency = self.settings.consistency(bucket);
        if let Transaction::Open(pins) = &mut self.transaction {
            let epoch = match pins.get(&bucket) {
                Some(pin) => pin.epoch(),
                None => {
                    let pin =
                        self.backend.pin(plan.index.id, &consistency, SERVE_TIMEOUT_MS).await?;
                    let epoch = pin.epoch();
                    pins.insert(bucket, pin);
                    epoch
                }
            };
            consistency = Consistency::Epoch(epoch);
        }
        plan.request.consistency = consistency;
        plan.request.timeout_ms = SERVE_TIMEOUT_MS;
        let batches = self.backend.scan(plan.request.clone()).await?;
        Ok(Rows::scan(plan, batches))
    }

    fn constants(&mut self, plan: ConstantPlan) -> Result<Rows> {
        let mut rows = Vec::new();
        if let Some(values) = plan.values {
            let row = values.into_iter().map(|value| match value {
                ConstantValue::Known(value) => Ok(Datum::Value(value)),
                ConstantValue::Session(name, arguments) => self.session_function(&name, &arguments),
            });
            rows.push(row.collect::<Result<_>>()?);
        }
        Ok(Rows::table(plan.columns, rows))
    }

    fn session_function(&mut self, name: &str, arguments: &[Value]) -> Result<Datum> {
        Ok(match (name, arguments) {
            ("pg_advisory_unlock_all", []) => Datum::NULL,
            ("set_config", [Value::String(setting), Value::String(value), Value::Bool(_)]) => {
                let setting = setting.to_lowercase();
                self.settings.set(&setting, Some(value))?;
                Datum::text(self.settings.show(&setting)?)
            }
            ("version", []) => {
                Datum::text(format!("PostgreSQL {}", super::settings::SERVER_VERSION))
            }
            ("current_schema", []) => Datum::text("public"),
            ("current_database" | "current_catalog", []) => Datum::text(&*self.database),
            ("current_user" | "session_user" | "user", []) => Datum::text(&*self.user),
            ("pg_backend_pid", []) => Datum::int(self.process.into()),
            ("current_setting", [Value::String(setting), ..]) => {
                Datum::text(self.settings.show(&setting.to_lowercase())?)
            }
            _ => {
                return Err(unsupported(
                    format!("{name}() does not take these arguments"),
                    "SHOW ALL",
                ));
            }
        })
    }

    async fn show(&self, what: &Show) -> Result<Rows> {
        let rows = show::rows(what, &*self.backend, &self.settings).await?;
        Ok(Rows::table(show::columns(what), rows).with_fixed_tag("SHOW"))
    }

    /// Returns the bucket with a name; an index of that name is an error.
    async fn bucket(&self, name: &str) -> Result<Arc<BucketInfo>> {
        match self.backend.relation(name).await? {
            Relation::Bucket(bucket) => Ok(bucket),
            Relation::Index(index) => Err(unsupported(
                format!("{name} is an index"),
                format!("documents are written to its bucket, {}", index.spec.bucket),
            )),
        }
    }

    async fn insert(&mut self, insert: &Insert, values: &[Value]) -> Result<StatementOutcome> {
        let bucket = self.bucket(&insert.bucket).await?;
        let mut writes = Vec::with_capacity(insert.rows.len());
        for (id, doc) in &insert.rows {
            let id = text_argument(id, values, "an id")?;
            proto::value::key::check_id(&id)?;
            let doc = text_argument(doc, values, "a document")?;
            Value::parse_json(doc.as_bytes())
                .map_err(|error| error.context(format!("document {id:?}")))?;
            let kind = match insert.replace {
                true => WriteKind::Upsert(doc.into()),
                false => WriteKind::Insert(doc.into()),
            };
            writes.push(Write { id, kind });
        }
        let affected = self.write(&bucket, writes).await?;
        Ok(StatementOutcome::Tag(format!("INSERT 0 {affected}"), None))
    }

    async fn delete(
        &mut self,
        bucket: &str,
        ids: &[Expr],
        values: &[Value],
    ) -> Result<StatementOutcome> {
        let bucket = self.bucket(bucket).await?;
        let mut writes = Vec::with_capacity(ids.len());
        for id in ids {
            // Ids are strings, so no document has any other id.
            if let Value::String(id) = constant_value(id, values)? {
                writes.push(Write { id, kind: WriteKind::Delete });
            }
        }
        let affected = match writes.is_empty() {
            true => 0,
            false => self.write(&bucket, writes).await?,
        };
        Ok(StatementOutcome::Tag(format!("DELETE {affected}"), None))
    }

    async fn write(&mut self, bucket: &BucketInfo, writes: Vec<Write>) -> Result<u64> {
        let reply = self.backend.write(bucket, writes).await?;
        self.settings.written.add(reply.position);
        Ok(reply.affected)
    }
}

/// True if a statement changes something that other sessions see.
fn writes(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Insert(_)
            | Statement::Delete { .. }
            | Statement::CopyIn { .. }
            | Statement::CreateBucket(_)
            | Statement::DropBucket { .. }
            | Statement::CreateIndex(_)
            | Statement::BuildIndex { .. }
            | Statement::DropIndex { .. }
            | Statement::Admin(_)
    )
}

fn constant_value(expr: &Expr, values: &[Value]) -> Result<Value> {
    let mut expr = expr.clone();
    crate::sql::plan::refuse_names(&expr)?;
    bind(&mut expr, values)?;
    Ok(constant(&expr))
}

fn text_argument(expr: &Expr, values: &[Value], what: &str) -> Result<String> {
    match constant_value(expr, values)? {
        Value::String(text) => Ok(text),
        Value::Null | Value::Missing => {
            Err(Error::new(ErrorCode::InvalidText, format!("{what} must not be NULL")))
        }
        other => Ok(other.to_json()),
    }
}
