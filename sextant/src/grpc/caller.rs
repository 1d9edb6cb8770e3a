//! The sender of a gRPC call.

use std::sync::Arc;

use proto::model::ids::{TokenId, UserId};
use proto::{Error, ErrorCode};
use tonic::service::Interceptor;
use tonic::{Request, Status};

use super::status::status;
use crate::auth::doors::Doors;
use crate::auth::link::Link;
use crate::limited::PeerInfo;
use crate::principal::{Identified, Principal, Proof};

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
        let principal = self.0.bearer(&link, credentials).map_err(status)?;
        request.extensions_mut().insert(principal);
        Ok(request)
    }
}

/// The principal of a call, as [`AtTheDoor`] has found it out. A call that has not come through the door is sent by nobody: a user that
/// does not exist, and so may do nothing.
pub(super) fn principal<T>(request: &Request<T>) -> Principal {
    request.extensions().get::<Principal>().cloned().unwrap_or_else(|| {
        let by = Proof::Token(TokenId(0));
        let nobody = Identified { id: UserId(0), name: String::new(), by, from: None };
        Principal::User(Arc::new(nobody))
    })
}
