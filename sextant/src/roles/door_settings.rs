//! The settings that determine which clients the ports for users admit, and where the audit is
//! written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use coordinator::Coordinator;
use proto::env::{Env, Task};
use proto::model::ids::NodeId;
use proto::{Error, ErrorCode, Result};

use super::security::Security;
use crate::audit::{AUDIT_MB, Audit, FindCoordinator};
use crate::auth::login_policy::LoginPolicy;
use crate::auth::newest_users::NewestUsers;
use crate::flow::ClientLimits;

/// The maximum size of the audit in MiB: more than any disk has.
const AUDIT_MB_MAX: u64 = 1 << 30;

/// The kinds of clients that are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Auth {
    /// Any client of this machine
    Trust,
    /// Users, with passwords, tokens or certificates
    Scram,
}

/// The settings of a router's login policy and audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginSettings {
    /// `auth`
    pub auth: Option<Auth>,
    /// The limits of clients.
    pub limits: ClientLimits,
    /// `audit_dir`
    pub audit_dir: Option<PathBuf>,
    /// `audit_mb`
    pub audit_mb: Option<u64>,
}

impl LoginSettings {
    /// Opens the audit of a node in the directory of the settings, or else in the data directory.
    /// Without either there is no audit.
    pub(super) async fn open_audit(
        &self,
        node: NodeId,
        data: Option<&Path>,
        env: &Env,
    ) -> Result<Audit> {
        let Some(dir) = self.audit_dir.as_deref().or(data) else { return Ok(Audit::off()) };
        Audit::open(env, dir, self.audit_bytes_max(), node).await
    }

    /// Starts the task that writes the changes of a coordinator's catalog to the audit. The task
    /// runs until it is dropped.
    pub(super) fn start_placement_audit(
        &self,
        member: &Arc<Coordinator>,
        node: NodeId,
        data: &Path,
        env: &Env,
    ) -> Task {
        let dir = self.audit_dir.clone().unwrap_or_else(|| data.to_owned());
        let member = Arc::clone(member);
        let find: FindCoordinator = Arc::new(move || member.clone());
        Audit::follow_in((dir, self.audit_bytes_max()), node, find, env)
    }

    /// Returns the size limit of the audit in bytes.
    fn audit_bytes_max(&self) -> u64 {
        self.audit_mb.unwrap_or(AUDIT_MB).clamp(1, AUDIT_MB_MAX) << 20
    }

    /// Returns the login policy of a process. If the process has certificates, each client must
    /// prove its identity.
    pub(super) fn login_policy(
        &self,
        security: &Security,
        users: Arc<NewestUsers>,
        audit: Audit,
        env: &Env,
    ) -> Result<Arc<LoginPolicy>> {
        match (security.tls(), self.auth) {
            (None, None | Some(Auth::Trust)) => {
                Ok(LoginPolicy::trust_within(self.limits, audit, env))
            }
            (Some(_), Some(Auth::Trust)) => Err(Error::new(
                ErrorCode::InvalidParameter,
                "auth = trust goes with --insecure only: a process with certificates asks each client who it is",
            )),
            (tls, None | Some(Auth::Scram)) => {
                Ok(LoginPolicy::for_users_within(users, tls.cloned(), (self.limits, audit), env))
            }
        }
    }
}
