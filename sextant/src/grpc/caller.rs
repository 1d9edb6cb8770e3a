//! The sender of a gRPC call.

use std::sync::Arc;

use proto::env::Env;
use proto::{Error, ErrorCode};
use tonic::service::Interceptor;
use tonic::{Request, Status};

use super::status::status;
use crate::audit::Door;
use crate::auth::doors::Doors;
use crate::auth::link::Link;
use crate::limited::PeerInfo;
use crate::principal::Principal;
use crate::sql::backend::{Backend, Backends};

/// The metadata with the credentials of a call.
const AUTHORIZATION: &str = "authorization";

/// Lets calls in, and tells their services who has sent them.
#[derive(Clone)]
pub(super) struct AtTheDoor(pub(super) Arc<Doors>);

impl Interceptor for AtTheDoor {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let Some(link) = request.extensions().get::<PeerInfo>().map(Link::of_request) else {
            return Err(status(Error::new(ErrorCode::BadLogin, "the call has no connection")));
        };
        // Nothing behind the door needs the token.
        let credentials = request.metadata_mut().remove(AUTHORIZATION);
        let credentials = credentials.as_ref().map(|value| value.as_encoded_bytes());
        let principal = self.0.bearer(&link, Door::Grpc, credentials).map_err(status)?;
        request.extensions_mut().insert(principal);
        Ok(request)
    }
}

/// The principal of a call, as [`AtTheDoor`] has found it out.
pub(super) fn principal<T>(request: &Request<T>) -> Result<Principal, Status> {
    request.extensions().get::<Principal>().cloned().ok_or_else(|| {
        status(Error::new(ErrorCode::BadLogin, "the call has not come through a door"))
    })
}

/// The backends of a port's calls, and the seams of its process.
#[derive(Clone)]
pub(super) struct Callers {
    pub(super) backends: Arc<dyn Backends>,
    pub(super) doors: Arc<Doors>,
    pub(super) env: Env,
}

impl Callers {
    /// The backend of the sender of a call.
    pub(super) fn of<T>(&self, request: &Request<T>) -> Result<Arc<dyn Backend>, Status> {
        Ok(self.backends.for_principal(principal(request)?))
    }
}
