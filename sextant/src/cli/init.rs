//! `sextant init`: creates the first user of a cluster, an administrator.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proto::env::Env;
use proto::rpc::api::Directory;
use proto::{Error, ErrorCode, Result};

use super::client::print_text;
use super::role::parse_member;
use super::secrets;
use crate::roles::{FirstAdmin, make_first_admin};
use crate::tls::{OperatorTls, read_private, read_public};
use crate::wire::{Connect, PeerDirectory, Peers, loopback_connect, operator_connect};

/// The time limit for the answer of the coordinators.
const WITHIN: Duration = Duration::from_secs(20);

/// The name of the environment variable with the password.
const PASSWORD: &str = "SEXTANT_PASSWORD";

/// `sextant init`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the user
    #[arg(long, value_name = "NAME")]
    admin: String,
    /// Members of the coordinator. One that answers is enough
    #[arg(
        long,
        env = "SEXTANT_COORDINATORS",
        value_name = "N=HOST:PORT",
        value_delimiter = ',',
        required = true
    )]
    coordinators: Vec<String>,
    /// File with the password, readable by its owner only. Without it SEXTANT_PASSWORD is the
    /// password, and without both one is drawn and printed
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Certificate of the cluster's authority (PEM)
    #[arg(long, value_name = "FILE", required_unless_present = "insecure")]
    ca: Option<PathBuf>,
    /// Certificate of an operator (PEM)
    #[arg(long, value_name = "FILE", required_unless_present = "insecure")]
    cert: Option<PathBuf>,
    /// Private key of the operator's certificate, readable by its owner only
    #[arg(long, value_name = "FILE", required_unless_present = "insecure")]
    key: Option<PathBuf>,
    /// Call coordinators of this machine that run with --insecure
    #[arg(long, conflicts_with_all = ["ca", "cert", "key"])]
    insecure: bool,
}

/// Creates the user. Returns an error if the cluster has a user already.
pub async fn run(args: Args) -> Result<()> {
    let env = Env::real();
    let members =
        args.coordinators.iter().map(|text| parse_member(text)).collect::<Result<Vec<_>>>()?;
    let given = match &args.password_file {
        Some(path) => Some(secrets::from_file(&env, path).await?),
        None => secrets::from_environment(PASSWORD),
    };
    let password = given.clone().unwrap_or_else(|| secrets::draw(&*env.random));
    let peers = Peers::new(members, connect(&args, &env).await?, &env);
    let directory = PeerDirectory(Arc::clone(&peers));
    let coordinator = directory.coordinator();
    let admin =
        FirstAdmin { name: args.admin.clone(), password: password.clone(), until_unix_ms: None };
    let made = tokio::time::timeout(WITHIN, make_first_admin(&*coordinator, &env, admin)).await;
    let late = |_| Err(Error::unavailable("no coordinator has answered in time"));
    made.unwrap_or_else(late).map_err(|error| match error.code {
        ErrorCode::WrongState => {
            error.with_hint("a user that may do everything makes others: CREATE USER")
        }
        _ => error,
    })?;
    print_text(&format!("user {} may do everything\n", args.admin))?;
    match given {
        Some(_) => Ok(()),
        None => print_text(&format!("its password, shown only now: {password}\n")),
    }
}

/// Prepares the connections to the coordinators, with the operator's certificate if there is one.
async fn connect(args: &Args, env: &Env) -> Result<Connect> {
    let (Some(ca), Some(cert), Some(key)) = (&args.ca, &args.cert, &args.key) else {
        return Ok(loopback_connect());
    };
    let (ca, cert, key, its_env) = (ca.clone(), cert.clone(), key.clone(), env.clone());
    let tls = env
        .blocking(move || {
            let fs = &*its_env.fs;
            let (ca, cert) = (read_public(fs, &ca)?, read_public(fs, &cert)?);
            OperatorTls::new(&its_env, &ca, (&cert, &read_private(fs, &key)?))
        })
        .await?;
    Ok(operator_connect(tls))
}
