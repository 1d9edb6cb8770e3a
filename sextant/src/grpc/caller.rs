//! The sender of a gRPC call.

use std::sync::Arc;

use proto::env::Env;
use tonic::{Request, Status};

use crate::principal::Principal;
use crate::sql::backend::{Backend, Backends};

/// Returns the principal of a call. Calls carry no credentials yet.
pub(super) fn principal<T>(_request: &Request<T>) -> Result<Principal, Status> {
    Ok(Principal::Trusted)
}

/// The backends of a port's calls, and the seams of its process.
#[derive(Clone)]
pub(super) struct Callers {
    pub(super) backends: Arc<dyn Backends>,
    pub(super) env: Env,
}

impl Callers {
    /// The backend of the sender of a call.
    pub(super) fn of<T>(&self, request: &Request<T>) -> Result<Arc<dyn Backend>, Status> {
        Ok(self.backends.for_principal(principal(request)?))
    }
}
