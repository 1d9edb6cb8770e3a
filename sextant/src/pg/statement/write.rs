//! The execution of INSERT and DELETE. A long statement is checked on a blocking thread, so that
//! other sessions do not wait.

use std::sync::Arc;

use proto::expr::cost::CostMeter;
use proto::expr::{Expr, literal_number};
use proto::model::bucket::BucketInfo;
use proto::rpc::api::{CheckedWrite, CheckedWrites, Write, WriteKind};
use proto::value::{DOCUMENT_BYTES_MAX, Value};
use proto::{Error, ErrorCode, Result};

use crate::pg::session::floors::leaves_open;
use crate::pg::session::state::SessionState;
use crate::sql::ast::Insert;
use crate::sql::plan::{bind, constant, number_as_text, refuse_names};

/// The number of bytes of operands up to which they are checked on the session's thread, which
/// takes less than a millisecond.
const INLINE_BYTES_MAX: usize = 64 << 10;
/// The time for the check of an operand without its text, expressed as a number of bytes of text.
const OPERAND_BYTES: usize = 32;

impl SessionState {
    /// Executes an INSERT; returns its command tag.
    pub(super) async fn insert(&mut self, insert: &Insert, values: &[Value]) -> Result<String> {
        let bucket = self.bucket(&insert.bucket).await?;
        let exprs = insert.rows.iter().flat_map(|(id, doc)| [id, doc]);
        let writes = match is_long(exprs, values) {
            true => {
                let (insert, values) = (insert.clone(), values.to_vec());
                self.env.blocking(move || insertions(&insert, &values)).await?
            }
            false => insertions(insert, values)?,
        };
        let affected = self.write(&bucket, writes).await?;
        Ok(format!("INSERT 0 {affected}"))
    }

    /// Executes a DELETE; returns its command tag.
    pub(super) async fn delete(
        &mut self,
        bucket: &str,
        ids: &[Expr],
        values: &[Value],
    ) -> Result<String> {
        let bucket = self.bucket(bucket).await?;
        let writes = match is_long(ids, values) {
            true => {
                let (ids, values) = (ids.to_vec(), values.to_vec());
                self.env.blocking(move || deletions(&ids, &values)).await?
            }
            false => deletions(ids, values)?,
        };
        let affected = match writes.is_empty() {
            true => 0,
            false => self.write(&bucket, writes).await?,
        };
        Ok(format!("DELETE {affected}"))
    }

    /// Writes documents in the transaction, or directly outside of one; returns the number of
    /// changed documents.
    async fn write(&mut self, bucket: &Arc<BucketInfo>, writes: CheckedWrites) -> Result<u64> {
        if let Some((changes, snapshot)) = self.changes_to_write(bucket)? {
            return changes.write(snapshot, writes).await;
        }
        let before = self.settings.floors.begin_write(bucket.id);
        let reply = async { self.access.writer(bucket)?.write(writes).await }.await;
        if !reply.as_ref().is_err_and(leaves_open) {
            self.settings.floors.end_write(bucket.id, before);
        }
        let reply = reply?;
        self.settings.note_write(reply.position);
        Ok(reply.affected)
    }
}

/// Returns true if the check of a statement with these operands takes longer than about a
/// millisecond.
fn is_long<'a>(exprs: impl IntoIterator<Item = &'a Expr>, values: &[Value]) -> bool {
    let text = |value: &Value| if let Value::String(text) = value { text.len() } else { 0 };
    let mut bytes: usize = values.iter().map(text).sum();
    exprs.into_iter().any(|expr| {
        bytes += OPERAND_BYTES;
        if let Expr::Literal(value) = expr {
            bytes += text(value);
        }
        bytes > INLINE_BYTES_MAX
    })
}

/// Returns the checked writes of an INSERT, whose documents are JSON.
fn insertions(insert: &Insert, values: &[Value]) -> Result<CheckedWrites> {
    let cost = CostMeter::for_evaluation();
    let mut writes = Vec::with_capacity(insert.rows.len());
    for (id, doc) in &insert.rows {
        let id = text_of(id_value(id, values, &cost)?, "an id")?;
        proto::value::key::check_id(&id)?;
        let doc = text_of(constant_value(doc, values, &cost)?, "a document")?;
        let kind = match insert.replace {
            true => WriteKind::Upsert(doc.into()),
            false => WriteKind::Insert(doc.into()),
        };
        writes.push(CheckedWrite::new(Write { id, kind }, DOCUMENT_BYTES_MAX)?);
    }
    Ok(writes.into_iter().collect())
}

/// Returns the checked writes of a DELETE.
fn deletions(ids: &[Expr], values: &[Value]) -> Result<CheckedWrites> {
    let cost = CostMeter::for_evaluation();
    let mut writes = Vec::with_capacity(ids.len());
    for id in ids {
        // Ids are strings. A number means its text, which INSERT stores.
        if let Some(id) = proto::value::text(&id_value(id, values, &cost)?) {
            let write = Write { id: id.into_owned(), kind: WriteKind::Delete };
            writes.push(CheckedWrite::new(write, DOCUMENT_BYTES_MAX)?);
        }
    }
    Ok(writes.into_iter().collect())
}

/// Returns the value of an expression without columns.
fn constant_value(expr: &Expr, values: &[Value], cost: &CostMeter) -> Result<Value> {
    // Most operands are alone: no other operand determines their type.
    match expr {
        Expr::Literal(value) => return Ok(value.clone()),
        Expr::Parameter(n) if let Some(value) = values.get(usize::from(*n)) => {
            return Ok(value.clone());
        }
        _ => {}
    }
    let mut expr = expr.clone();
    refuse_names(&expr)?;
    bind(&mut expr, values, None, cost)?;
    constant(&expr, cost)
}

/// Returns the id that an expression specifies. A number becomes its text as written.
fn id_value(expr: &Expr, values: &[Value], cost: &CostMeter) -> Result<Value> {
    if literal_number(expr).is_none() {
        return constant_value(expr, values, cost);
    }
    let mut text = expr.clone();
    number_as_text(&mut text);
    constant_value(&text, values, cost)
}

/// Returns a value as text; an error for NULL.
fn text_of(value: Value, what: &str) -> Result<String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null | Value::Missing => {
            Err(Error::new(ErrorCode::InvalidText, format!("{what} must not be NULL")))
        }
        other => Ok(other.to_json()),
    }
}
