//! The gRPC service for statements about buckets, indexes and users.

use proto::env::Env;
use proto::grpc::admin_server::Admin;
use proto::grpc::{
    ExecuteReply, ExecuteRequest, ListBucketsReply, ListBucketsRequest, ListIndexesReply,
    ListIndexesRequest,
};
use proto::{Error, ErrorCode, Result};
use tonic::{Request, Response, Status};

use super::caller::{Callers, principal};
use super::status::counted_status;
use crate::access::{Access, AuditedAccess};
use crate::audit::PortProtocol;
use crate::principal::Principal;
use crate::sql::admin;
use crate::sql::ast::{Statement, UserStatement};
use crate::sql::definitions::ddl;
use crate::sql::remarks::Remarks;
use crate::sql::texts::parse_call;
use crate::sql::users::{self, UserResult};
use crate::status::catalog_status;
use crate::status::render::grpc as render;

/// The implementation of the gRPC service `Admin`.
pub(super) struct AdminService {
    pub(super) callers: Callers,
}

impl AdminService {
    /// Runs a statement of a principal and returns its command tag.
    async fn run(&self, access: &Access, principal: &Principal, sql: &str) -> Result<String> {
        let memory = self.callers.doors.flow().session_memory.of(principal);
        let (parsed, _room) = parse_call(sql, &memory, &self.callers.env).await?;
        let [only] = &parsed[..] else {
            let message = format!("Execute takes one statement, not {}", parsed.len());
            return Err(Error::new(ErrorCode::InvalidParameter, message));
        };
        let Some((kind, text)) = &only.audited else {
            let what = "Execute runs definitions and placement only";
            return Err(Error::new(ErrorCode::Unsupported, what)
                .with_hint("use the SQL port, or the Ingest and Query services"));
        };
        let audit = self.callers.doors.audit();
        let attempt = audit.attempt(principal, PortProtocol::Grpc, (*kind, text));
        let ran = change(&access.audited(&attempt), &self.callers.env, &only.statement).await;
        let failure = ran.as_ref().err().map(|error| error.code);
        attempt.end(failure).await;
        ran
    }
}

/// Runs a statement that changes something, and returns its command tag.
async fn change(access: &AuditedAccess, env: &Env, statement: &Statement) -> Result<String> {
    match statement {
        Statement::Admin(statement) => admin::run(access, statement, &Remarks::unread()).await,
        Statement::User(statement) => user(access, env, statement).await,
        other => {
            let tag = ddl::run(access, other, &Remarks::unread()).await?;
            tag.map(ToOwned::to_owned)
                .ok_or_else(|| Error::internal("a statement of the audit is no definition"))
        }
    }
}

/// Runs a statement about users and returns its command tag. Refuses a statement that creates a
/// token, since the reply has no field for the token.
async fn user(access: &AuditedAccess, env: &Env, statement: &UserStatement) -> Result<String> {
    if users::makes_token(statement) {
        let what = "Execute makes no tokens, since its answer has no place for one";
        return Err(Error::new(ErrorCode::Unsupported, what).with_hint("use the SQL port"));
    }
    match users::run(access, env, statement).await? {
        UserResult::Tag(tag) | UserResult::Token(tag, _) => Ok(tag.to_owned()),
    }
}

#[tonic::async_trait]
impl Admin for AdminService {
    async fn execute(
        &self,
        request: Request<ExecuteRequest>,
    ) -> std::result::Result<Response<ExecuteReply>, Status> {
        let access = self.callers.of(&request)?;
        let principal = principal(&request)?;
        let ran = self.run(&access, &principal, &request.into_inner().sql).await;
        let tag = ran.map_err(|error| counted_status(&access, error))?;
        Ok(Response::new(ExecuteReply { tag }))
    }

    async fn list_buckets(
        &self,
        request: Request<ListBucketsRequest>,
    ) -> std::result::Result<Response<ListBucketsReply>, Status> {
        let access = self.callers.of(&request)?;
        let status = catalog_status(&access, None);
        let status = status.map_err(|error| counted_status(&access, error))?;
        let buckets = status.buckets.iter().map(render::bucket).collect();
        Ok(Response::new(ListBucketsReply { buckets }))
    }

    async fn list_indexes(
        &self,
        request: Request<ListIndexesRequest>,
    ) -> std::result::Result<Response<ListIndexesReply>, Status> {
        let access = self.callers.of(&request)?;
        let status = catalog_status(&access, None);
        let status = status.map_err(|error| counted_status(&access, error))?;
        let indexes = status.indexes.iter().map(render::index).collect();
        Ok(Response::new(ListIndexesReply { indexes }))
    }
}
