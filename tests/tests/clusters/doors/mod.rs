//! Tests the privileges that each statement, call and page needs, for each kind of user. The tables name every variant of the parser's
//! statements, every call of the gRPC services and every path of the HTTP port, and fail when one is missing.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

mod calls;
mod pages;
mod statements;
mod unseen;
mod withdrawn;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use proto::env::Env;
use proto::model::ids::{BucketId, UserId};
use proto::model::users::{Grants, Privilege, User, UserLimits, Users};
use sextant::access::{Access, AccessProvider, Authorization};
use sextant::auth::newest_users::NewestUsers;
use sextant::backend::ClusterBackend;
use sextant::flow::{ClientCapacity, ClientLimits};
use sextant::limited::{ConnectionsMax, PortProtocol, limited_connections};
use sextant::pg::{PgConfig, PgServer};
use sextant::principal::{Principal, Proof};
use tests::harness::{TestCluster, sql};
use tokio::net::TcpListener;
use tokio_postgres::{Client, NoTls};

/// The privilege that a request needs. `b` is the bucket on which the users of these tests may have
/// privileges.
#[derive(Clone, Copy, Debug)]
enum Need {
    /// None: a log-in is sufficient.
    Own,
    /// One of these privileges on bucket `b`.
    On(&'static [Privilege]),
    /// This privilege on all buckets.
    All(Privilege),
}

/// A user of the tables, with its privileges.
#[derive(Clone, Debug)]
struct Role {
    name: String,
    grants: Grants,
    /// The bucket `b`, on which the users have privileges.
    bucket: BucketId,
}

impl Role {
    /// Returns the SQLSTATE of the refusal of a request with this need; `None` if it is allowed.
    fn refusal(&self, need: Need) -> Option<&'static str> {
        let own = self.grants.on_bucket(self.bucket);
        match need {
            Need::Own => None,
            Need::On(privileges) if privileges.iter().any(|each| own.allow(*each)) => None,
            Need::On(_) if own.is_empty() => Some("42P01"),
            Need::On(_) => Some("42501"),
            Need::All(privilege) if self.grants.all.allow(privilege) => None,
            Need::All(_) => Some("42501"),
        }
    }

    /// Returns true if an outcome (an SQLSTATE) agrees with the need. An allowed request may fail
    /// for another reason.
    fn agrees(&self, need: Need, state: &str) -> bool {
        match self.refusal(need) {
            Some(refusal) => state == refusal,
            None => state != "42501" && state != "42P01",
        }
    }
}

/// A cluster whose ports treat every client as a given principal.
struct Doors {
    cluster: TestCluster,
    known: Arc<NewestUsers>,
    authorization: Arc<Authorization>,
    env: Env,
    names: Mutex<u64>,
}

/// An access provider of a port that treats every client as one principal.
struct As(Arc<Authorization>, Principal);

impl AccessProvider for As {
    fn access_of(&self, _: Principal) -> Access {
        self.0.access_of(self.1.clone())
    }
}

impl Doors {
    /// Starts a cluster with the buckets `b` and `hidden`, each with documents and an index, and a pushed bucket `p`.
    async fn start() -> Self {
        let cluster = TestCluster::start(1, 2).await;
        let env = Env::real();
        let (router, directory) = (cluster.cluster().router(), cluster.cluster().directory());
        let backend = ClusterBackend::new(router, directory, env.clone(), Arc::default());
        let known = Arc::new(NewestUsers::default());
        let backend = Arc::new(backend.with_users(Arc::clone(&known)));
        let flow = ClientCapacity::new(ClientLimits::default());
        let authorization = Arc::new(backend.authorization(&flow));
        let doors = Self { cluster, known, authorization, env, names: Mutex::default() };
        let operator = doors.client(&Principal::Trusted).await;
        sql::run(
            &operator,
            "CREATE BUCKET b WITH (vbuckets = 4); CREATE BUCKET hidden WITH (vbuckets = 4);
             CREATE INDEX i ON b (name) WITH (slices = 2); CREATE INDEX hidden_i ON hidden (name);
             INSERT INTO b (id, doc) VALUES ('1', '{\"name\":\"Ulm\"}'), ('2', '{\"name\":\"Bonn\"}');
             INSERT INTO hidden (id, doc) VALUES ('1', '{\"name\":\"Secret\"}');",
        )
        .await;
        // A session sees its own writes; then the router knows epochs that have them, for all other sessions.
        for index in ["i", "hidden_i"] {
            sql::value(&operator, &format!("SELECT count(*) FROM {index}")).await;
        }
        doors
    }

    fn bucket(&self, name: &str) -> BucketId {
        self.cluster.cluster().router().catalog().bucket(name).expect("it was created").id
    }

    /// Creates a user, or changes the grants of one.
    fn user(&self, name: &str, grants: Grants) -> Principal {
        let mut users = Users::clone(&self.known.current());
        let id = users.find_by_name(name).map_or_else(|| self.next(), |user| user.id);
        let user = User {
            id,
            name: name.to_owned(),
            verifier: None,
            until_unix_ms: None,
            tokens: Vec::new(),
            grants,
            limits: UserLimits::default(),
            secret_no: 0,
        };
        let principal = Principal::user(&user, Proof::Certificate, None);
        users.by_name.insert(name.to_owned(), Arc::new(user));
        users.cas += 1;
        self.known.learn(Arc::new(users));
        principal
    }

    fn drop_user(&self, name: &str) {
        let mut users = Users::clone(&self.known.current());
        users.by_name.remove(name);
        users.cas += 1;
        self.known.learn(Arc::new(users));
    }

    fn next(&self) -> UserId {
        let mut names = self.names.lock().expect("no panic before");
        *names += 1;
        UserId(*names)
    }

    /// Returns grants of one privilege on a bucket.
    fn on(&self, privilege: Privilege, bucket: &str) -> Grants {
        let own = [privilege].into_iter().collect();
        Grants { buckets: [(self.bucket(bucket), own)].into(), ..Grants::default() }
    }

    /// Returns a user without privileges, one for each privilege on `b`, and one for each privilege
    /// on all buckets.
    fn roles(&self) -> Vec<(Role, Principal)> {
        let mut grants = BTreeMap::from([("none".to_owned(), Grants::default())]);
        for privilege in Privilege::ALL {
            grants.insert(format!("{privilege} on b"), self.on(privilege, "b"));
            let all = [privilege].into_iter().collect();
            grants.insert(format!("{privilege} on all"), Grants { all, ..Grants::default() });
        }
        let bucket = self.bucket("b");
        let role = |(name, grants): (String, Grants)| {
            let principal = self.user(&name, grants.clone());
            (Role { name, grants, bucket }, principal)
        };
        grants.into_iter().map(role).collect()
    }

    fn access_of(&self, principal: &Principal) -> Arc<dyn AccessProvider> {
        Arc::new(As(Arc::clone(&self.authorization), principal.clone()))
    }

    /// Opens an SQL session of a principal.
    async fn client(&self, principal: &Principal) -> Client {
        let access = self.access_of(principal);
        let server = PgServer::new(access, self.trust(), self.env.clone(), PgConfig::default());
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn(async move { server.connection(theirs).await });
        let mut config = tokio_postgres::Config::new();
        config.user("me").dbname("db");
        let (client, connection) = config.connect_raw(ours, NoTls).await.expect("a session");
        tokio::spawn(connection);
        client
    }

    /// Returns the address of a gRPC port that serves one principal.
    async fn grpc(&self, principal: &Principal) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let access = self.access_of(principal);
        let services = sextant::grpc::services(access, &self.trust(), self.env.clone());
        let limit = ConnectionsMax::default().of_grpc();
        let incoming = limited_connections(listener, PortProtocol::Grpc, limit, &self.env);
        tokio::spawn(services.serve_with_incoming(incoming));
        address
    }

    /// Returns a log-in policy that admits every client, since the access of a port has a fixed
    /// principal.
    fn trust(&self) -> Arc<sextant::auth::login_policy::LoginPolicy> {
        sextant::auth::login_policy::LoginPolicy::trust(&self.env)
    }
}
