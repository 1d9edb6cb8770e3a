//! `sextant cert`: the certificate authority of a cluster, and the certificates that it signs.
//!
//! The directory of the authority contains the key that signs the certificates of all nodes and
//! users. Operators should keep this directory on a machine of their own, not on a machine of the
//! cluster.

use std::path::{Path, PathBuf};

use proto::env::{Env, FileSystem, create_dir_durably};
use proto::model::identity::ClusterId;
use proto::model::ids::NodeId;
use proto::model::node::Role;
use proto::{Error, ErrorCode, Result};

use crate::tls::{Authority, Identity, is_user_name, read_private, read_public, write_private};

const CA: &str = "ca.pem";
const CA_KEY: &str = "ca.key";
const CLUSTER: &str = "cluster";

const EXAMPLE: &str = "\
Example, for a cluster of three processes on one machine and a user:
  sextant cert init --dir certs
  sextant cert node --dir certs --role coordinator --id 1
  sextant cert node --dir certs --role indexer --id 201
  sextant cert node --dir certs --role router --id 301 --host db.example.com,10.0.0.5
  sextant cert client --dir certs --user ada
  sextant cert operator --dir certs

Each node gets its .pem and .key and ca.pem (--tls-cert, --tls-key, --tls-ca). ca.key stays with the operators.";

/// `sextant cert`
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    #[command(subcommand)]
    command: CertCommand,
}

#[derive(Debug, clap::Subcommand)]
enum CertCommand {
    /// Make the certificate authority of a cluster: ca.pem, ca.key, cluster
    Init(InitArgs),
    /// Sign the certificate of a node: <role>-<number>.pem and .key
    Node(NodeArgs),
    /// Sign the certificate of a user: user-<name>.pem and .key
    Client(ClientArgs),
    /// Sign the certificate of an operator: operator.pem and .key
    Operator(Place),
}

/// `sextant cert init`
#[derive(Debug, clap::Args)]
struct InitArgs {
    /// The cluster, if it exists already: 32 hexadecimal digits, as the file IDENTITY of a data directory has them. Otherwise
    /// it is drawn, and the cluster gets it when it begins
    #[arg(long, value_name = "ID")]
    cluster: Option<String>,
    /// Directory of the authority
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// The directory of the authority, and the handling of a certificate that exists already.
#[derive(Debug, clap::Args)]
struct Place {
    /// Directory of the authority; the certificate goes there too
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Put a new certificate and key in the place of those that are there
    #[arg(long)]
    renew: bool,
}

/// `sextant cert node`
#[derive(Debug, clap::Args)]
struct NodeArgs {
    #[command(flatten)]
    place: Place,
    /// Role of the process: coordinator, projector, indexer or router
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Role,
    /// Node number of the process
    #[arg(long, value_name = "N")]
    id: u64,
    /// Names and addresses by which users reach the process. Other processes do not judge them
    #[arg(long, value_name = "HOST", value_delimiter = ',', default_value = "localhost,127.0.0.1")]
    host: Vec<String>,
}

/// `sextant cert client`
#[derive(Debug, clap::Args)]
struct ClientArgs {
    #[command(flatten)]
    place: Place,
    /// Name of the user
    #[arg(long, value_name = "NAME")]
    user: String,
}

/// Parses the name of a role.
fn role(text: &str) -> std::result::Result<Role, String> {
    let roles = [Role::Coordinator, Role::Projector, Role::Indexer, Role::Router];
    let known = roles.into_iter().find(|role| role.name() == text);
    known.ok_or_else(|| "the roles are coordinator, projector, indexer and router".to_owned())
}

/// Runs a command.
pub async fn run(args: Args) -> Result<()> {
    let env = Env::real();
    let inside = env.clone();
    let lines = env
        .blocking(move || match args.command {
            CertCommand::Init(args) => init(&inside, &args),
            CertCommand::Node(args) => {
                let node =
                    |cluster| Identity::Node { cluster, role: args.role, node: NodeId(args.id) };
                let name = format!("{}-{}", args.role.name(), args.id);
                issue(&inside, &args.place, &name, node, &args.host)
            }
            CertCommand::Client(args) => client(&inside, &args),
            CertCommand::Operator(place) => {
                let operator = |cluster| Identity::Operator { cluster };
                issue(&inside, &place, "operator", operator, &[])
            }
        })
        .await?;
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

/// Returns an error for an invalid argument.
fn argument_error(what: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidParameter, what)
}

/// Creates the authority in a directory. Returns the lines to print: the cluster, and the file of
/// the certificate.
fn init(env: &Env, args: &InitArgs) -> Result<Vec<String>> {
    let (fs, dir) = (&*env.fs, &args.dir);
    let cluster = match &args.cluster {
        Some(text) => text.parse().map_err(|()| {
            argument_error(format!("--cluster {text}: a cluster id has 32 hexadecimal digits"))
                .with_hint("the file IDENTITY in the data directory of a node has it")
        })?,
        None => {
            let random = || u128::from(env.random.next_u64());
            ClusterId(random() << 64 | random())
        }
    };
    let paths = [CA_KEY, CA, CLUSTER].map(|name| dir.join(name));
    if let Some(there) = paths.iter().find(|path| fs.exists(path)) {
        return Err(argument_error(format!(
            "{} exists: the directory has an authority",
            there.display()
        ))
        .with_hint("choose another --dir; an authority that is overwritten is lost"));
    }
    create_dir_durably(fs, dir).map_err(|error| {
        Error::from(error).context(format!("making the directory {}", dir.display()))
    })?;
    let authority = Authority::new(cluster, env.clock.unix_ms())?;
    write_private(fs, &paths[0], &authority.key())?;
    write_private(fs, &paths[1], authority.certificate())?;
    write_private(fs, &paths[2], &format!("{cluster}\n"))?;
    Ok(vec![format!("cluster {cluster}"), paths[1].display().to_string()])
}

/// Signs the certificate of a user; returns the names of its files.
fn client(env: &Env, args: &ClientArgs) -> Result<Vec<String>> {
    let user = &args.user;
    let is_file_name = !user.contains('/') && !user.contains('\0');
    if !is_user_name(user) || !is_file_name {
        return Err(argument_error(format!("user {user:?}: a name has 1 to 63 bytes, and no '/'")));
    }
    let named = |cluster| Identity::User { cluster, name: user.clone() };
    issue(env, &args.place, &format!("user-{user}"), named, &[])
}

/// Signs a certificate and returns the names of its files.
fn issue(
    env: &Env,
    place: &Place,
    name: &str,
    identity: impl FnOnce(ClusterId) -> Identity,
    hosts: &[String],
) -> Result<Vec<String>> {
    let (fs, dir) = (&*env.fs, &place.dir);
    let authority = authority(fs, dir)?;
    let issued = authority.issue(&identity(authority.cluster()), hosts, env.clock.unix_ms())?;
    let [certificate, key] = ["pem", "key"].map(|end| dir.join(format!("{name}.{end}")));
    for path in [&certificate, &key] {
        match (fs.exists(path), place.renew) {
            (true, false) => {
                return Err(argument_error(format!("{} exists", path.display()))
                    .with_hint("--renew puts a new certificate in its place"));
            }
            (true, true) => fs.remove_file(path).map_err(|error| {
                Error::from(error).context(format!("removing {}", path.display()))
            })?,
            (false, _) => {}
        }
    }
    write_private(fs, &key, &issued.key)?;
    write_private(fs, &certificate, &issued.certificate)?;
    Ok([certificate, key].iter().map(|path| path.display().to_string()).collect())
}

/// Reads the certificate authority from its directory.
fn authority(fs: &dyn FileSystem, dir: &Path) -> Result<Authority> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let absent = [CA_KEY, CA, CLUSTER].map(|name| dir.join(name));
    if let Some(path) = absent.iter().find(|path| !fs.exists(path)) {
        return Err(argument_error(format!(
            "{} has no authority: {} is missing",
            dir.display(),
            path.display()
        ))
        .with_hint("sextant cert init --dir makes one"));
    }
    let cluster = text(read_public(fs, &dir.join(CLUSTER))?);
    let cluster = cluster.trim().parse().map_err(|()| {
        argument_error(format!(
            "{} has no cluster id of 32 hexadecimal digits",
            dir.join(CLUSTER).display()
        ))
    })?;
    let certificate = text(read_public(fs, &dir.join(CA))?);
    let key = text(read_private(fs, &dir.join(CA_KEY))?);
    Authority::from_pem(cluster, &certificate, &key)
        .map_err(|error| error.context(format!("the authority in {}", dir.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(dir: &Path, renew: bool) -> Place {
        Place { dir: dir.to_owned(), renew }
    }

    #[test]
    fn files_are_made_once_for_the_owner_only_and_renewed_on_request() {
        let env = Env::real();
        let above = tempfile::tempdir().unwrap();
        let dir = above.path().join("certs");
        let operator = |renew| {
            let identity = |cluster| Identity::Operator { cluster };
            issue(&env, &place(&dir, renew), "operator", identity, &[])
        };
        let missing = operator(false).unwrap_err();
        assert!(missing.message.contains("ca.key is missing"), "{missing}");
        let args = InitArgs { cluster: Some("ab".repeat(16)), dir: dir.clone() };
        init(&env, &args).unwrap();
        let twice = init(&env, &args).unwrap_err();
        assert!(twice.message.contains("ca.key exists"), "{twice}");
        operator(false).unwrap();
        let first = read_private(&*env.fs, &dir.join("operator.key")).unwrap();
        let there = operator(false).unwrap_err();
        assert!(there.message.contains("operator.pem exists"), "{there}");
        operator(true).unwrap();
        assert_ne!(read_private(&*env.fs, &dir.join("operator.key")).unwrap(), first);
        for path in env.fs.list(&dir).unwrap() {
            assert_eq!(env.fs.mode(&path).unwrap(), Some(0o600), "{}", path.display());
        }
        assert_eq!(env.fs.mode(&dir).unwrap(), Some(0o700));
    }

    #[test]
    fn a_cluster_a_role_and_a_name_are_checked() {
        let env = Env::real();
        let dir = tempfile::tempdir().unwrap();
        let args = InitArgs { cluster: Some("xyz".to_owned()), dir: dir.path().join("a") };
        assert!(init(&env, &args).unwrap_err().message.contains("32 hexadecimal digits"));
        assert!(role("operator").is_err());
        for user in ["", "a/b", &"a".repeat(64)] {
            let args = ClientArgs { place: place(dir.path(), false), user: user.to_owned() };
            assert!(client(&env, &args).unwrap_err().message.contains("1 to 63 bytes"));
        }
    }
}
