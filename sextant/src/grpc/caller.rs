//! The sender of a gRPC call.

use std::sync::Arc;

use proto::env::Env;
use proto::{Error, ErrorCode};
use tonic::{Request, Status};

use super::status::status;
use crate::auth::login_policy::LoginPolicy;
use crate::principal::Principal;
use crate::sql::backend::{Backend, Backends};

/// The principal of a call, as the door ([`super::admission`]) has found it out.
pub(super) fn principal<T>(request: &Request<T>) -> Result<Principal, Status> {
    request.extensions().get::<Principal>().cloned().ok_or_else(|| {
        status(Error::new(ErrorCode::BadLogin, "the call has not come through a door"))
    })
}

/// The backends of a port's calls, and the seams of its process.
#[derive(Clone)]
pub(super) struct Callers {
    pub(super) backends: Arc<dyn Backends>,
    pub(super) doors: Arc<LoginPolicy>,
    pub(super) env: Env,
}

impl Callers {
    /// The backend of the sender of a call.
    pub(super) fn of<T>(&self, request: &Request<T>) -> Result<Arc<dyn Backend>, Status> {
        Ok(self.backends.for_principal(principal(request)?))
    }
}
