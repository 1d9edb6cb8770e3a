//! The execution of statements, whose outcome is a command tag, rows to stream, or a COPY.

use std::borrow::Cow;
use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::ids::BucketId;
use proto::model::users::Privilege;
use proto::rpc::scan::Consistency;
use proto::value::Value;
use proto::{Error, Result};

use super::show;
use crate::access::AuditedAccess;
use crate::audit::PortProtocol;
use crate::pg::message::error::Notice;
use crate::pg::result::stream::Rows;
use crate::pg::session::resolved_names::ResolvedNames;
use crate::pg::session::state::{SERVE_TIMEOUT_MS, SessionState};
use crate::pg::session::transact::relation_of;
use crate::rows::scan_merge::start_merge;
use crate::rows::value::Datum;
use crate::sql::ParsedStatement;
use crate::sql::admin;
use crate::sql::ast::{Select, Show, Statement};
use crate::sql::definitions::ddl;
use crate::sql::error::unsupported;
use crate::sql::plan::{ConstantPlan, ConstantValue, IndexPlan, Plan};
use crate::sql::users::{self, UserResult};

/// The notice for a query of PostgreSQL's catalogue. The queries of psql's completion get no
/// notice, because it would appear in the line that the user types.
const NO_CATALOGUE: Notice = Notice {
    severity: "NOTICE",
    sqlstate: "00000",
    message: Cow::Borrowed("there is no PostgreSQL catalogue yet: its queries have no rows"),
    hint: Some(Cow::Borrowed("use SHOW BUCKETS, SHOW INDEXES, SHOW NODES and SHOW SLICES")),
};

/// The maximum number of times that the start of a scan is repeated because of a rollback.
const ROLLBACKS_MAX: usize = 3;

/// The outcome of a statement.
pub(in crate::pg) enum StatementOutcome {
    /// The command tag of a finished statement.
    Tag(String),
    /// Rows to send to the client.
    Rows(Rows),
    /// Rows to send to the client as COPY … TO STDOUT.
    CopyOut(Rows),
    /// A COPY … FROM STDIN, for which the client sends documents.
    CopyIn {
        /// The bucket to write to.
        bucket: Arc<BucketInfo>,
        /// The name of the field that contains a document's id.
        id_field: String,
        /// True if the COPY must be one commit, of any length.
        is_atomic: bool,
    },
}

impl SessionState {
    /// Executes a statement with the values of its parameters.
    pub(in crate::pg) async fn run(
        &mut self,
        parsed: &ParsedStatement,
        values: &[Value],
        kept: &ResolvedNames,
    ) -> Result<StatementOutcome> {
        let statement = &parsed.statement;
        self.check_writes(statement)?;
        let rows = StatementOutcome::Rows;
        let done = |tag: &str| Ok(StatementOutcome::Tag(tag.to_owned()));
        match statement {
            Statement::Select(select) => self.select(select, values, kept).await.map(rows),
            Statement::CopyOut(select) => {
                let rows = self.select(select, values, kept).await?;
                Ok(StatementOutcome::CopyOut(rows.with_tag("COPY")))
            }
            Statement::Catalogue(query) => {
                if !query.limited {
                    self.notices.push(NO_CATALOGUE);
                }
                Ok(rows(Rows::table(show::catalogue_columns(query), Vec::new())))
            }
            Statement::Explain(select) => {
                let plan = self.plan(select, values, kept).await?;
                if let Some((bucket, _)) = relation_of(&plan) {
                    self.access.check_privilege(Privilege::Scan, bucket)?;
                }
                Ok(rows(explanation(plan.explain())))
            }
            Statement::ExplainRebalance(index) => {
                self.explain_rebalance(index.clone()).await.map(rows)
            }
            Statement::Show(what) => self.show(what).await.map(rows),
            Statement::CopyIn { bucket, id_field, is_atomic } => {
                let bucket = self.bucket(bucket).await?;
                let (id_field, is_atomic) = (id_field.clone(), *is_atomic);
                Ok(StatementOutcome::CopyIn { bucket, id_field, is_atomic })
            }
            Statement::Insert(insert) => done(&self.insert(insert, values).await?),
            Statement::Delete { bucket, ids } => done(&self.delete(bucket, ids, values).await?),
            Statement::Admin(_)
            | Statement::User(_)
            | Statement::CreateBucket(_)
            | Statement::CreateDataSet(_)
            | Statement::LoadVersion { .. }
            | Statement::DropBucket { .. }
            | Statement::CreateIndex(_)
            | Statement::BuildIndex { .. }
            | Statement::DropIndex { .. }
            | Statement::CancelBuild(_)
            | Statement::AlterIndex { .. }
            | Statement::RenameIndex { .. } => {
                let ran = self.run_audited(parsed).await?;
                self.block.define(parsed);
                Ok(ran)
            }
            Statement::Set { .. }
            | Statement::SetTransaction(_)
            | Statement::SetCharacteristics(_)
            | Statement::ResetAll
            | Statement::DiscardAll
            | Statement::Nothing { .. }
            | Statement::Deallocate(_) => done(self.run_in_session(statement)?.unwrap_or_default()),
            Statement::Begin(_)
            | Statement::Commit
            | Statement::Rollback
            | Statement::Savepoint(_)
            | Statement::RollbackTo(_)
            | Statement::Release(_) => done(self.run_transaction_statement(statement).await?),
        }
    }

    /// Executes a statement that changes definitions, users, placement or nodes, and records it
    /// in the audit.
    async fn run_audited(&self, parsed: &ParsedStatement) -> Result<StatementOutcome> {
        let (kind, text) = parsed
            .audited
            .as_ref()
            .ok_or_else(|| Error::internal("a change has no text for the audit"))?;
        let audit = self.login.doors.audit();
        let attempt = audit.attempt(&self.login.principal, PortProtocol::Sql, (*kind, text));
        let ran = self.change(&self.access.audited(&attempt), &parsed.statement).await;
        let failure = ran.as_ref().err().map(|error| error.code);
        attempt.end(failure).await;
        ran
    }

    async fn change(
        &self,
        access: &AuditedAccess,
        statement: &Statement,
    ) -> Result<StatementOutcome> {
        let done = |tag: &str| StatementOutcome::Tag(tag.to_owned());
        match statement {
            Statement::Admin(statement) => {
                let tag = admin::run(access, statement, &self.remarks).await?;
                Ok(StatementOutcome::Tag(tag))
            }
            Statement::User(statement) => match users::run(access, &self.env, statement).await? {
                UserResult::Tag(tag) => Ok(done(tag)),
                UserResult::Token(tag, token) => {
                    let row = vec![Datum::text(token.0)];
                    let table = Rows::table(show::token_columns(), vec![row]);
                    Ok(StatementOutcome::Rows(table.with_fixed_tag(tag)))
                }
            },
            other => {
                let tag = ddl::run(access, other, &self.remarks).await?;
                Ok(done(tag.unwrap_or_default()))
            }
        }
    }

    /// Executes a statement that concerns only this session. Returns the command tag, or `None`
    /// for any other statement.
    fn run_in_session<'a>(&mut self, statement: &'a Statement) -> Result<Option<&'a str>> {
        let tag = match statement {
            Statement::Set { name, value, local } => {
                if *local {
                    self.warn_without_transaction("SET LOCAL can only be used in a transaction");
                }
                self.set(name, value.as_deref(), *local)?;
                if value.is_some() { "SET" } else { "RESET" }
            }
            Statement::SetTransaction(modes) => {
                let message = "SET TRANSACTION can only be used in a transaction";
                self.warn_without_transaction(message);
                self.set_modes(modes, "transaction")?;
                "SET"
            }
            Statement::SetCharacteristics(modes) => {
                self.set_modes(modes, "default_transaction")?;
                "SET"
            }
            Statement::ResetAll => self.reset("RESET"),
            Statement::DiscardAll => self.reset("DISCARD ALL"),
            Statement::Nothing { tag } => tag,
            Statement::Deallocate(_) => "DEALLOCATE",
            _ => return Ok(None),
        };
        Ok(Some(tag))
    }

    /// Resets all settings and returns the command tag.
    fn reset(&mut self, tag: &'static str) -> &'static str {
        self.settings.reset();
        tag
    }

    /// Returns the rows of EXPLAIN REBALANCE.
    async fn explain_rebalance(&self, index: Option<String>) -> Result<Rows> {
        let plan = |index| self.access.plan_rebalance(index);
        let plan = admin::rebalance(&self.access, index.as_deref(), plan).await?;
        Ok(explanation(admin::explain(&self.access.catalog(), &plan)))
    }

    /// Adds a warning if the session is not in a transaction.
    fn warn_without_transaction(&mut self, message: &'static str) {
        if self.is_outside_transaction() && !self.block.in_text {
            self.notices.push(Notice::warning("25P01", message));
        }
    }

    /// Starts a SELECT and returns its rows.
    async fn select(
        &mut self,
        select: &Select,
        values: &[Value],
        kept: &ResolvedNames,
    ) -> Result<Rows> {
        match self.plan_read(select, values, kept).await? {
            Plan::Index(plan) => {
                self.warn_of_texts(&plan, values, kept).await;
                self.scan(*plan).await
            }
            Plan::Documents(plan) => {
                let view = self.view(plan.bucket.id).await?;
                self.note_version(plan.bucket.id);
                Ok(Rows::documents(self.access.clone(), plan, view))
            }
            Plan::Constant(plan) => self.constants(plan),
        }
    }

    /// Adds a notice about a comparison with a text that is true for no row in a sample of the
    /// index. The check is made only once for a prepared statement.
    async fn warn_of_texts(&mut self, plan: &IndexPlan, values: &[Value], kept: &ResolvedNames) {
        let has_texts = plan.texts.iter().any(|comparison| comparison.text(values).is_some());
        let is_asked = has_texts && self.settings.shows(Notice::REMARK);
        let may_read = || self.access.check_privilege(Privilege::Scan, plan.index.bucket).is_ok();
        if !is_asked || !may_read() || !kept.take_first_use() {
            return;
        }
        let Some(kinds) = self.samples.kinds(&self.access, &plan.index).await else { return };
        let spec = &plan.index.spec;
        let remark = plan.texts.iter().find_map(|texts| texts.remark(spec, &kinds, values));
        self.notices.extend(remark.map(Notice::notice_with_hint));
    }

    /// Starts a scan and returns its rows.
    async fn scan(&mut self, mut plan: IndexPlan) -> Result<Rows> {
        plan.request.timeout_ms = SERVE_TIMEOUT_MS;
        plan.request.hedge_after = self.settings.hedge_after();
        let mut rollbacks = 0;
        let batches = loop {
            let view = self.scan_view(&plan).await?;
            plan.request.own = view.and_then(|view| view.own);
            let snapshot = view.and_then(|view| view.snapshot);
            plan.request.consistency = match snapshot {
                Some(epoch) => Consistency::Epoch(epoch),
                None => self.consistency(&plan.index).await?,
            };
            snapshot.map_or(Ok(()), |epoch| self.check_floor(&plan.index, epoch))?;
            let batches = self.access.scan(plan.request.clone(), None).await?;
            if !self.is_rolled_back(plan.index.bucket) {
                break start_merge(&self.access, &plan, batches).await?;
            }
            // The scan has waited for the end of a rollback, which may have lost writes of this session.
            self.find_write_epoch(plan.index.bucket).await?;
            rollbacks += 1;
            if rollbacks == ROLLBACKS_MAX {
                let what = "the bucket was rolled back again and again while a scan began";
                return Err(Error::unavailable(what));
            }
        };
        let Self { settings, access, .. } = self;
        settings.floors.note_scan(&plan.index, &plan.request.consistency, batches.epoch());
        settings.floors.forget_dropped(|| access.catalog());
        self.note_version(plan.index.bucket);
        Ok(Rows::scan(plan, batches))
    }

    /// Records the version of a data set that a statement reads, for the setting `read_version`.
    fn note_version(&mut self, bucket: BucketId) {
        let catalog = self.access.catalog();
        if let Some((_, _, version)) = catalog.version(bucket) {
            self.settings.read_version.clone_from(&version.name);
        }
    }

    /// Returns the row of a SELECT without FROM.
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

    /// Returns the value of a function of the session, such as `version()`.
    fn session_function(&mut self, name: &str, arguments: &[Value]) -> Result<Datum> {
        Ok(match (name, arguments) {
            ("pg_advisory_unlock_all", []) => Datum::NULL,
            ("set_config", [Value::String(setting), Value::String(value), Value::Bool(local)]) => {
                let setting = setting.to_lowercase();
                self.set(&setting, Some(value), *local)?;
                Datum::text(self.settings.show(&setting)?)
            }
            ("version", []) => Datum::text(format!(
                "PostgreSQL {}",
                crate::pg::session::known_settings::SERVER_VERSION
            )),
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

    /// Returns the rows of a SHOW.
    async fn show(&self, what: &Show) -> Result<Rows> {
        let rows = show::rows(what, &self.access, &self.settings).await?;
        Ok(Rows::table(show::columns(what), rows).with_fixed_tag("SHOW"))
    }
}

/// Returns the rows of an EXPLAIN.
fn explanation(lines: Vec<String>) -> Rows {
    let rows = lines.into_iter().map(|line| vec![Datum::text(line)]).collect();
    Rows::table(show::explain_columns(), rows).with_fixed_tag("EXPLAIN")
}
