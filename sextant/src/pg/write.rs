//! Runs INSERT and DELETE.

use proto::expr::Expr;
use proto::expr::cost::CostMeter;
use proto::model::bucket::BucketInfo;
use proto::rpc::api::{Write, WriteKind};
use proto::value::Value;
use proto::{Error, ErrorCode, Result};

use super::state::SessionState;
use crate::sql::ast::Insert;
use crate::sql::plan::{bind, constant, refuse_names};

impl SessionState {
    /// Runs INSERT; returns its command tag.
    pub(super) async fn insert(&mut self, insert: &Insert, values: &[Value]) -> Result<String> {
        let bucket = self.bucket(&insert.bucket).await?;
        let cost = CostMeter::for_evaluation();
        let mut writes = Vec::with_capacity(insert.rows.len());
        for (id, doc) in &insert.rows {
            let id = text_argument(id, values, &cost, "an id")?;
            proto::value::key::check_id(&id)?;
            let doc = text_argument(doc, values, &cost, "a document")?;
            Value::parse_json(doc.as_bytes())
                .map_err(|error| error.context(format!("document {id:?}")))?;
            let kind = match insert.replace {
                true => WriteKind::Upsert(doc.into()),
                false => WriteKind::Insert(doc.into()),
            };
            writes.push(Write { id, kind });
        }
        let affected = self.write(&bucket, writes).await?;
        Ok(format!("INSERT 0 {affected}"))
    }

    /// Runs DELETE; returns its command tag.
    pub(super) async fn delete(
        &mut self,
        bucket: &str,
        ids: &[Expr],
        values: &[Value],
    ) -> Result<String> {
        let bucket = self.bucket(bucket).await?;
        let cost = CostMeter::for_evaluation();
        let mut writes = Vec::with_capacity(ids.len());
        for id in ids {
            // Ids are strings. A number stands for its text, which INSERT stores.
            if let Some(id) = proto::value::text(&constant_value(id, values, &cost)?) {
                writes.push(Write { id: id.into_owned(), kind: WriteKind::Delete });
            }
        }
        let affected = match writes.is_empty() {
            true => 0,
            false => self.write(&bucket, writes).await?,
        };
        Ok(format!("DELETE {affected}"))
    }

    async fn write(&mut self, bucket: &BucketInfo, writes: Vec<Write>) -> Result<u64> {
        let reply = self.backend.write(bucket, writes).await?;
        self.settings.written.add(reply.position);
        Ok(reply.affected)
    }
}

fn constant_value(expr: &Expr, values: &[Value], cost: &CostMeter) -> Result<Value> {
    let mut expr = expr.clone();
    refuse_names(&expr)?;
    bind(&mut expr, values, None, cost)?;
    constant(&expr, cost)
}

fn text_argument(expr: &Expr, values: &[Value], cost: &CostMeter, what: &str) -> Result<String> {
    match constant_value(expr, values, cost)? {
        Value::String(text) => Ok(text),
        Value::Null | Value::Missing => {
            Err(Error::new(ErrorCode::InvalidText, format!("{what} must not be NULL")))
        }
        other => Ok(other.to_json()),
    }
}
