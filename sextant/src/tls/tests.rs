//! Tests of handshakes over real sockets, with certificates of the process's and of another
//! authority.

use std::io;
use std::path::Path;
use std::sync::Arc;

use proto::env::Env;
use proto::model::identity::ClusterId;
use proto::model::ids::NodeId;
use proto::model::node::Role;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::issue::{Authority, IssuedCertificate};
use super::ports::{Clients, Protocol};
use super::server::{TlsConnection, accept};
use super::settings::TlsSettings;
use super::{ExpectedNode, Identity, TlsFiles, UserTls, connect, reload, write_private};

const CLUSTER: ClusterId = ClusterId(7);
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn node(role: Role, node: u64) -> Identity {
    Identity::Node { cluster: CLUSTER, role, node: NodeId(node) }
}

fn user(name: &str) -> Identity {
    Identity::User { cluster: CLUSTER, name: name.to_owned() }
}

fn hosts() -> Vec<String> {
    vec!["localhost".to_owned(), "127.0.0.1".to_owned()]
}

struct World {
    env: Env,
    ca: Authority,
}

impl World {
    fn new() -> Self {
        let env = Env::real();
        let ca = Authority::new(CLUSTER, env.clock.unix_ms()).expect("an authority");
        Self { env, ca }
    }

    fn issue(&self, identity: &Identity) -> IssuedCertificate {
        self.ca.issue(identity, &hosts(), self.env.clock.unix_ms()).expect("a certificate")
    }

    fn settings(&self, identity: &Identity) -> Arc<TlsSettings> {
        TlsSettings::new_signed(&self.env, &self.ca, identity, &hosts()).expect("settings")
    }

    fn user_tls(&self, own: Option<&IssuedCertificate>) -> UserTls {
        let own = own.map(|own| (own.certificate.as_bytes(), own.key.as_bytes()));
        UserTls::new(&self.env, self.ca.certificate().as_bytes(), own, Protocol::Sql)
            .expect("a configuration")
    }
}

/// Returns both ends of a new connection.
async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).await;
    (client.expect("connected"), listener.accept().await.expect("accepted").0)
}

/// Performs a handshake of a user with a router; returns the router's result, and the user's result
/// with the channel binding data.
async fn user_at(
    router: &TlsSettings,
    user: &UserTls,
    host: &str,
) -> (io::Result<TlsConnection>, io::Result<Option<Vec<u8>>>) {
    let (client, server) = pair().await;
    let shaken = async {
        let (mut stream, binding) = user.connect(host, client).await?;
        // A refusal of the client's certificate arrives after the client's own handshake.
        stream.write_all(b"?").await?;
        stream.read_u8().await.map(|_| binding)
    };
    let served = async {
        let mut shaken = accept(router, Clients::Anyone, Protocol::Sql, server).await?;
        shaken.stream.write_all(b"!").await?;
        shaken.stream.flush().await?;
        Ok(shaken)
    };
    tokio::join!(served, shaken)
}

/// Performs a handshake of a node that calls another one; returns the results of the called node
/// and of the caller.
async fn node_at(
    called: &TlsSettings,
    caller: &TlsSettings,
    expected: ExpectedNode,
) -> (io::Result<TlsConnection>, io::Result<()>) {
    let (client, server) = pair().await;
    let shaken = async {
        let mut stream = connect(caller, expected, client).await?;
        stream.read_u8().await.map(drop)
    };
    let served = async {
        let mut shaken = accept(called, Clients::Nodes, Protocol::Grpc, server).await?;
        shaken.stream.write_all(b"!").await?;
        shaken.stream.flush().await?;
        Ok(shaken)
    };
    tokio::join!(served, shaken)
}

fn refusal<T>(result: io::Result<T>) -> String {
    result.err().expect("a refusal").to_string()
}

#[tokio::test]
async fn a_user_connects_with_and_without_a_certificate() {
    let world = World::new();
    let router = world.settings(&node(Role::Router, 301));
    let (served, shaken) = user_at(&router, &world.user_tls(None), "localhost").await;
    let served = served.expect("no certificate is needed");
    assert_eq!(served.peer, None);
    assert_eq!(served.end_point.as_ref().map(Vec::len), Some(32));
    assert_eq!(shaken.expect("accepted"), served.end_point, "both sides bind the same channel");
    let ada = world.issue(&user("ada"));
    let (served, shaken) = user_at(&router, &world.user_tls(Some(&ada)), "127.0.0.1").await;
    assert_eq!(served.expect("accepted").peer, Some(user("ada")));
    shaken.expect("accepted");
    let (_, shaken) = user_at(&router, &world.user_tls(None), "other.example").await;
    assert!(refusal(shaken).contains("not valid for name"), "the host name is judged");
}

#[tokio::test]
async fn certificates_of_nodes_and_operators_are_refused_at_ports_for_users() {
    let world = World::new();
    let router = world.settings(&node(Role::Router, 301));
    for other in [node(Role::Indexer, 201), Identity::Operator { cluster: CLUSTER }] {
        let issued = world.issue(&other);
        let (served, shaken) = user_at(&router, &world.user_tls(Some(&issued)), "localhost").await;
        let why = refusal(served);
        assert!(why.contains(&other.to_string()) && why.contains("port for users"), "{why}");
        refusal(shaken);
    }
    let (served, _) = user_at(&router, &world.user_tls(None), "localhost").await;
    served.expect("the port goes on");
}

#[tokio::test]
async fn nodes_know_each_other_by_their_certificates() {
    let world = World::new();
    let indexer = world.settings(&node(Role::Indexer, 201));
    let router = world.settings(&node(Role::Router, 301));
    let right = ExpectedNode { role: Role::Indexer, node: NodeId(201) };
    let (served, called) = node_at(&indexer, &router, right).await;
    assert_eq!(served.expect("accepted").peer, Some(node(Role::Router, 301)));
    called.expect("the right node");
    for (role, number) in [(Role::Indexer, 202), (Role::Projector, 201)] {
        let expected = ExpectedNode { role, node: NodeId(number) };
        let why = refusal(node_at(&indexer, &router, expected).await.1);
        let both = why.contains("indexer 201") && why.contains(&number.to_string());
        assert!(both && why.contains(role.name()), "{why}");
    }
}

/// Returns settings with a certificate that is issued at a given time.
fn settings_of(world: &World, ca: &Authority, identity: &Identity, at_ms: u64) -> Arc<TlsSettings> {
    let issued = ca.issue(identity, &hosts(), at_ms).expect("a certificate");
    // The process's own check would refuse an expired one, so the process was started earlier.
    let (env, clock, _) = proto::env::sim::world(1);
    clock.set(at_ms);
    let then = Env { clock: env.clock, ..world.env.clone() };
    let settings = TlsSettings::of_pem(&then, &issued.certificate, &issued.key, ca.certificate());
    clock.set(world.env.clock.unix_ms());
    settings.expect("usable")
}

#[tokio::test]
async fn nodes_of_another_authority_another_cluster_or_another_time_are_refused() {
    let world = World::new();
    let now = world.env.clock.unix_ms();
    let indexer = world.settings(&node(Role::Indexer, 201));
    let right = ExpectedNode { role: Role::Indexer, node: NodeId(201) };
    let other_ca = Authority::new(CLUSTER, now).expect("an authority");
    let stranger = settings_of(&world, &other_ca, &node(Role::Router, 301), now);
    let (_, called) = node_at(&indexer, &stranger, right).await;
    assert!(
        refusal(called).contains("not signed by the authority"),
        "the caller trusts another authority"
    );
    let old_ca = Authority::new(CLUSTER, now - 500 * DAY_MS).expect("an authority");
    let old = settings_of(&world, &old_ca, &node(Role::Router, 301), now - 400 * DAY_MS);
    let trusts_old =
        TlsSettings::new_signed(&world.env, &old_ca, &node(Role::Indexer, 201), &hosts())
            .expect("usable");
    let (served, _) = node_at(&trusts_old, &old, right).await;
    let why = refusal(served);
    assert!(why.contains("it has expired"), "{why}");
    let elsewhere = Identity::Node { cluster: ClusterId(8), role: Role::Router, node: NodeId(301) };
    let of_both = world.settings(&elsewhere);
    let (_, called) = node_at(&indexer, &of_both, right).await;
    let why = refusal(called);
    assert!(why.contains("indexer 201") && why.contains(&ClusterId(8).to_string()), "{why}");
    let (served, _) = node_at(&indexer, &world.settings(&node(Role::Router, 301)), right).await;
    served.expect("the port goes on");
}

#[tokio::test]
async fn a_port_for_nodes_refuses_users_and_callers_without_a_certificate() {
    let world = World::new();
    let indexer = world.settings(&node(Role::Indexer, 201));
    let ada = world.issue(&user("ada"));
    for (own, reason) in [(None, "no certificate"), (Some(&ada), "user \"ada\"")] {
        let own = own.map(|own| (own.certificate.as_bytes(), own.key.as_bytes()));
        let ca = world.ca.certificate().as_bytes();
        let caller = UserTls::new(&world.env, ca, own, Protocol::Grpc).expect("a configuration");
        let (client, server) = pair().await;
        let served = accept(&indexer, Clients::Nodes, Protocol::Grpc, server);
        let (served, _) = tokio::join!(served, caller.connect("localhost", client));
        let why = refusal(served);
        assert!(why.contains(reason), "{why}");
    }
}

#[tokio::test]
async fn a_client_of_another_protocol_is_refused() {
    let world = World::new();
    let router = world.settings(&node(Role::Router, 301));
    let ca = world.ca.certificate().as_bytes();
    let grpc = UserTls::new(&world.env, ca, None, Protocol::Grpc).expect("a configuration");
    let (served, shaken) = user_at(&router, &grpc, "localhost").await;
    refusal(served);
    refusal(shaken);
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_closed_after_a_while_and_keeps_no_other_one_out() {
    let world = World::new();
    let router = world.settings(&node(Role::Router, 301));
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(pair().await);
    }
    let (mut clients, mut waiting) = (Vec::new(), Vec::new());
    for (client, server) in silent {
        let router = Arc::clone(&router);
        clients.push(client);
        waiting.push(Box::pin(async move {
            accept(&router, Clients::Anyone, Protocol::Sql, server).await.err()
        }));
    }
    let all = futures::future::join_all(waiting);
    for error in all.await {
        assert_eq!(error.map(|error| error.kind()), Some(io::ErrorKind::TimedOut));
    }
}

/// Replaces the files of a process in a directory by newly issued ones.
async fn replaced(world: &World, files: &TlsFiles, issued: &IssuedCertificate) {
    for (path, text) in [
        (&files.certificate, &*issued.certificate),
        (&files.key, &*issued.key),
        (&files.ca, world.ca.certificate()),
    ] {
        let fs = &*world.env.fs;
        if fs.exists(path) {
            fs.remove_file(path).expect("removed");
        }
        write_private(fs, path, text).expect("written");
    }
}

fn files_in(dir: &Path) -> TlsFiles {
    let [certificate, key, ca] = ["node.pem", "node.key", "ca.pem"].map(|name| dir.join(name));
    TlsFiles { certificate, key, ca }
}

#[tokio::test]
async fn new_files_are_taken_over_and_wrong_ones_are_not() {
    let world = World::new();
    let dir = tempfile::tempdir().expect("a directory");
    let files = files_in(dir.path());
    let own = node(Role::Router, 301);
    replaced(&world, &files, &world.issue(&own)).await;
    let settings = TlsSettings::of_files(&world.env, files.clone()).await.expect("usable");
    let first = settings.generation();
    assert!(!settings.reload().await, "nothing is new");
    // A certificate without its key, one of another node, one of another authority.
    let second = world.issue(&own);
    let torn =
        IssuedCertificate { key: world.issue(&own).key, certificate: second.certificate.clone() };
    let strange = Authority::new(CLUSTER, world.env.clock.unix_ms()).expect("an authority");
    let strange = strange.issue(&own, &hosts(), world.env.clock.unix_ms()).expect("issued");
    for wrong in [torn, world.issue(&node(Role::Router, 302)), strange] {
        replaced(&world, &files, &wrong).await;
        assert!(!settings.reload().await);
        assert!(Arc::ptr_eq(&first, &settings.generation()), "the present one stays");
    }
    world.env.fs.remove_file(&files.ca).expect("removed");
    assert!(!settings.reload().await, "a missing file");
    replaced(&world, &files, &second).await;
    assert!(settings.reload().await);
    assert_ne!(first.end_point, settings.generation().end_point);
    assert!(!settings.reload().await, "the same once more");
    let (served, shaken) = user_at(&settings, &world.user_tls(None), "localhost").await;
    assert_eq!(shaken.expect("accepted"), served.expect("accepted").end_point);
}

#[tokio::test]
async fn a_key_that_others_may_read_is_refused_by_name() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let dir = tempfile::tempdir().expect("a directory");
    let files = files_in(dir.path());
    replaced(&world, &files, &world.issue(&node(Role::Router, 301))).await;
    let wide = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(&files.key, wide).expect("a mode");
    let error = TlsSettings::of_files(&world.env, files.clone()).await.err().expect("refused");
    let key = files.key.display().to_string();
    assert!(error.message.contains(&key) && error.message.contains("0640"), "{error}");
    assert_eq!(error.hint, Some(format!("chmod 600 {key}")));
}

#[test]
fn the_end_of_a_certificate_is_warned_of_thirty_days_before() {
    let world = World::new();
    let now = world.env.clock.unix_ms();
    let settings = world.settings(&node(Role::Router, 301));
    let end = settings.generation().not_after;
    let days = |days: u64| reload::warning(end, now + days * DAY_MS);
    assert_eq!(days(0), None);
    assert_eq!(days(334), None);
    assert!(days(336).expect("a warning").contains("expires in 2"));
    assert!(days(366).expect("a warning").contains("has expired"));
}

#[test]
fn an_authority_is_made_again_from_its_files_and_refuses_a_foreign_key() {
    let world = World::new();
    let now = world.env.clock.unix_ms();
    let again = Authority::from_pem(CLUSTER, world.ca.certificate(), &world.ca.key());
    let again = again.expect("the same authority");
    let issued = again.issue(&node(Role::Router, 301), &hosts(), now).expect("issued");
    TlsSettings::of_pem(&world.env, &issued.certificate, &issued.key, world.ca.certificate())
        .expect("the chain holds");
    let other = Authority::new(CLUSTER, now).expect("an authority");
    Authority::from_pem(CLUSTER, world.ca.certificate(), &other.key()).err().expect("foreign");
    assert!(world.ca.issue(&user("ada"), &["a b".to_owned()], now).is_err(), "no host name");
}
