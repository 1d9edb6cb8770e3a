//! The principal of a gRPC call, and its access to the cluster.

use std::sync::Arc;

use proto::env::Env;
use proto::{Error, ErrorCode};
use tonic::{Request, Status};

use super::status::status;
use crate::access::{Access, AccessProvider};
use crate::auth::login_policy::LoginPolicy;
use crate::principal::Principal;

/// Returns the principal that the admission ([`super::admission`]) has attached to a request.
pub(super) fn principal<T>(request: &Request<T>) -> Result<Principal, Status> {
    request.extensions().get::<Principal>().cloned().ok_or_else(|| {
        status(Error::new(ErrorCode::BadLogin, "the call has not come through a door"))
    })
}

/// The source of the access of each caller of a gRPC port, with the seams of the process.
#[derive(Clone)]
pub(super) struct Callers {
    pub(super) provider: Arc<dyn AccessProvider>,
    pub(super) doors: Arc<LoginPolicy>,
    pub(super) env: Env,
}

impl Callers {
    /// Returns the access of the principal that has sent a request.
    pub(super) fn of<T>(&self, request: &Request<T>) -> Result<Access, Status> {
        Ok(self.provider.access_of(principal(request)?))
    }
}
