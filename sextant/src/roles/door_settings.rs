//! The settings of the ports for users: who is let in.

use std::sync::Arc;

use proto::env::Env;
use proto::{Error, ErrorCode, Result};
use serde::Deserialize;

use super::security::Security;
use crate::auth::doors::Doors;
use crate::auth::known::KnownUsers;
use crate::flow::ClientLimits;

/// The clients that are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// Any client of this machine
    Trust,
    /// Users, with passwords, tokens or certificates
    Scram,
}

/// The settings of a router's doors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorSettings {
    /// `auth`
    pub auth: Option<Auth>,
    /// What they may take.
    pub limits: ClientLimits,
}

impl DoorSettings {
    /// Makes the doors of a process. A process with certificates asks each client who it is.
    pub(super) fn doors(
        self,
        security: &Security,
        users: Arc<KnownUsers>,
        env: &Env,
    ) -> Result<Arc<Doors>> {
        match (security.tls(), self.auth) {
            (None, None | Some(Auth::Trust)) => Ok(Doors::trust_within(self.limits, env)),
            (Some(_), Some(Auth::Trust)) => Err(Error::new(
                ErrorCode::InvalidParameter,
                "auth = trust goes with --insecure only: a process with certificates asks each client who it is",
            )),
            (tls, None | Some(Auth::Scram)) => {
                Ok(Doors::for_users_within(users, tls.cloned(), self.limits, env))
            }
        }
    }
}
