//! The description of prepared statements: the types of their parameters and the columns of their
//! rows.

use std::sync::Arc;

use proto::Result;
use proto::expr::ColumnType;

use super::show;
use crate::pg::session::resolved_names::ResolvedNames;
use crate::pg::session::state::SessionState;
use crate::sql::ast::Statement;
use crate::sql::plan::{ColumnInfo, ParameterTypes};
use crate::sql::users;

/// The description of a prepared statement.
#[derive(Debug, Default)]
pub(in crate::pg) struct Description {
    /// The types of the statement's parameters.
    pub(in crate::pg) parameters: Vec<ColumnType>,
    /// The columns of the result's rows; `None` for a statement without rows.
    pub(in crate::pg) columns: Option<Arc<[ColumnInfo]>>,
}

impl SessionState {
    /// Returns the description of a statement with this number of parameters.
    pub(in crate::pg) async fn describe(
        &self,
        statement: &Statement,
        parameters: u16,
        kept: &ResolvedNames,
    ) -> Result<Description> {
        let mut types = ParameterTypes::new(parameters);
        let columns = match statement {
            Statement::Select(select) | Statement::Explain(select) | Statement::CopyOut(select) => {
                let resolved = self.resolve(select, kept).await?;
                let columns = match statement {
                    Statement::Select(_) => Some(resolved.columns()),
                    Statement::Explain(_) => Some(show::explain_columns().into()),
                    _ => None,
                };
                return Ok(Description {
                    parameters: resolved.parameter_types(parameters),
                    columns,
                });
            }
            Statement::Catalogue(query) => Some(show::catalogue_columns(query).into()),
            Statement::ExplainRebalance(_) => Some(show::explain_columns().into()),
            Statement::Show(what) => Some(show::columns(what).into()),
            Statement::User(statement) if users::makes_token(statement) => {
                Some(show::token_columns().into())
            }
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
            // A driver that sends a COPY without waiting needs its errors this early, so that it
            // can match the answers.
            Statement::CopyIn { bucket, .. } => {
                self.bucket(bucket).await?;
                None
            }
            _ => None,
        };
        Ok(Description { parameters: types.finish(), columns })
    }
}
