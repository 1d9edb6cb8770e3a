//! The login policy of `sextant dev`. The process either trusts clients of its machine, or
//! requires passwords. In the latter case it encrypts connections with certificates that it signs
//! itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proto::env::{Env, FileSystem, Task, create_dir_durably};
use proto::model::identity::ClusterId;
use proto::model::ids::NodeId;
use proto::model::node::Role;
use proto::{Error, ErrorCode, Result};

use super::secrets;
use crate::audit::{AUDIT_MB, Audit};
use crate::auth::login_policy::LoginPolicy;
use crate::flow::ClientLimits;
use crate::roles::{Auth, Cluster, FirstAdmin, make_first_admin};
use crate::tls::{
    Authority, Identity, TlsFiles, TlsSettings, read_private, read_public, write_private,
};

/// The name of the first user.
const ADMIN: &str = "admin";
/// The time for which the printed password of the first user is valid unless it is changed, in
/// milliseconds.
const PASSWORD_MS: u64 = 24 * 60 * 60 * 1000;
/// The node number in the certificate: that of the router of a cluster in one process.
const ROUTER: NodeId = NodeId(300);
/// The time limit until the ports have received the first user.
const KNOWN_WITHIN: Duration = Duration::from_secs(5);

/// The options of the login policy.
#[derive(Debug, clap::Args)]
pub struct LoginArgs {
    /// Clients that are let in: any of this machine (trust), or users only (scram), which is the default if other machines can call
    #[arg(long, value_name = "trust|scram", hide_possible_values = true)]
    auth: Option<Auth>,
    /// Encrypt the connections of users, with a certificate authority of its own in the data directory. Always so if other machines can
    /// call
    #[arg(long)]
    tls: bool,
}

/// The login policy that the options require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredLogin {
    auth: Auth,
    tls: bool,
}

impl LoginArgs {
    /// Returns the login policy that the options require. `is_loopback` is true if other machines
    /// cannot call the ports.
    pub(super) fn required_login(&self, is_loopback: bool) -> Result<RequiredLogin> {
        let usual = if is_loopback && !self.tls { Auth::Trust } else { Auth::Scram };
        let wanted =
            RequiredLogin { auth: self.auth.unwrap_or(usual), tls: self.tls || !is_loopback };
        let bad = |what: &str| Err(Error::new(ErrorCode::InvalidParameter, what));
        match wanted {
            RequiredLogin { auth: Auth::Trust, .. } if !is_loopback => {
                bad("--auth trust is for loopback addresses only: other machines can call this one")
            }
            RequiredLogin { auth: Auth::Trust, tls: true } => {
                bad("--tls goes with --auth scram: clients that are trusted do not log in")
            }
            wanted => Ok(wanted),
        }
    }
}

impl RequiredLogin {
    /// Returns true if clients must prove their identity.
    pub(super) fn requires_proof(self) -> bool {
        self.auth == Auth::Scram
    }

    /// Returns the login policy of a running cluster, and the tasks that keep it up to date.
    pub(super) async fn login_policy(
        self,
        cluster: &Cluster,
        (host, limits): (&str, ClientLimits),
        env: &Env,
    ) -> Result<(Arc<LoginPolicy>, Vec<Task>)> {
        let audit = Audit::open(env, cluster.data_dir(), AUDIT_MB << 20, ROUTER).await?;
        let directory = cluster.directory();
        let mut tasks = Vec::from_iter(audit.follow(Arc::new(move || directory.coordinator())));
        if self.auth == Auth::Trust {
            return Ok((LoginPolicy::trust_within(limits, audit, env), tasks));
        }
        let tls = match self.tls {
            false => None,
            true => {
                let router = cluster.router();
                let known = router.wait_catalog(|catalog| catalog.cluster.is_some()).await;
                let id = known.cluster.ok_or_else(|| Error::internal("no cluster"))?;
                let (dir, hosts) = (cluster.data_dir().join("tls"), hosts(host));
                let its_env = env.clone();
                let files = env.blocking(move || certificates(&its_env, &dir, id, &hosts)).await?;
                let tls = TlsSettings::of_files(env, files).await?;
                tasks.push(tls.follow(env));
                Some(tls)
            }
        };
        Ok((LoginPolicy::for_users_within(cluster.users(), tls, (limits, audit), env), tasks))
    }

    /// Creates the first user of the cluster. Returns its name and password as they appear in the
    /// line that announces a ready process. Returns `None` if there are users already, or if
    /// clients are trusted.
    pub(super) async fn first_admin(self, cluster: &Cluster, env: &Env) -> Result<Option<String>> {
        if self.auth == Auth::Trust || !cluster.users().current().by_name.is_empty() {
            return Ok(None);
        }
        let password = secrets::draw(&*env.random);
        let admin = FirstAdmin {
            name: ADMIN.to_owned(),
            password: password.clone(),
            until_unix_ms: Some(env.clock.unix_ms() + PASSWORD_MS),
        };
        // The command is refused if there are users that this process has not received yet.
        match make_first_admin(&*cluster.directory().coordinator(), env, admin).await {
            Ok(()) => {}
            Err(error) if error.code == ErrorCode::WrongState => return Ok(None),
            Err(error) => return Err(error),
        }
        let known = async {
            while cluster.users().current().find_by_name(ADMIN).is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let late = |_| Error::unavailable("the first user was made, and is not known here yet");
        tokio::time::timeout(KNOWN_WITHIN, known).await.map_err(late)?;
        Ok(Some(format!("{ADMIN}:{password}")))
    }
}

/// Returns the host names for the certificate of this process.
fn hosts(host: &str) -> Vec<String> {
    let mut hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let is_everywhere = host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_unspecified());
    if !is_everywhere && !hosts.iter().any(|known| known == host) {
        hosts.push(host.to_owned());
    }
    hosts
}

/// Creates the certificate authority of a cluster in a directory, unless it exists, and signs a
/// new certificate for this start of the process. Blocks the thread.
fn certificates(env: &Env, dir: &Path, cluster: ClusterId, hosts: &[String]) -> Result<TlsFiles> {
    let fs = &*env.fs;
    create_dir_durably(fs, dir)?;
    let now = env.clock.unix_ms();
    let [ca, ca_key, certificate, key] =
        ["ca.pem", "ca.key", "server.pem", "server.key"].map(|name| dir.join(name));
    // With this directory, `sextant cert client --dir` signs certificates of users.
    replace_file(fs, &dir.join("cluster"), &format!("{cluster}\n"))?;
    let authority = if fs.exists(&ca) && fs.exists(&ca_key) {
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).map_err(|_| Error::new(ErrorCode::Corrupt, "not UTF-8"))
        };
        let (ca, key) = (text(read_public(fs, &ca)?)?, text(read_private(fs, &ca_key)?)?);
        Authority::from_pem(cluster, &ca, &key)?
    } else {
        let authority = Authority::new(cluster, now)?;
        replace_file(fs, &ca, authority.certificate())?;
        replace_file(fs, &ca_key, &authority.key())?;
        authority
    };
    let own = Identity::Node { cluster, role: Role::Router, node: ROUTER };
    let issued = authority.issue(&own, hosts, now)?;
    replace_file(fs, &certificate, &issued.certificate)?;
    replace_file(fs, &key, &issued.key)?;
    Ok(TlsFiles { certificate, key, ca })
}

/// Replaces a file by one with this text.
fn replace_file(fs: &dyn FileSystem, path: &Path, text: &str) -> Result<()> {
    if fs.exists(path) {
        fs.remove_file(path)?;
    }
    write_private(fs, path, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_clients_need_passwords_and_tls() {
        let wanted =
            |auth, tls, is_loopback| LoginArgs { auth, tls }.required_login(is_loopback).ok();
        let some = |auth, tls| Some(RequiredLogin { auth, tls });
        assert_eq!(wanted(None, false, true), some(Auth::Trust, false));
        assert_eq!(wanted(Some(Auth::Scram), false, true), some(Auth::Scram, false));
        assert_eq!(wanted(None, true, true), some(Auth::Scram, true));
        assert_eq!(wanted(None, false, false), some(Auth::Scram, true));
        assert_eq!(wanted(Some(Auth::Scram), false, false), some(Auth::Scram, true));
        assert_eq!(wanted(Some(Auth::Trust), false, false), None);
        assert_eq!(wanted(Some(Auth::Trust), true, true), None);
    }
}
