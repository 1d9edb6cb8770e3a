//! The catalog, users and states with which the targets run, and from which samples are made.

use std::sync::{Arc, LazyLock};

use coordinator::testing::{Decisions, Machine, Replica, StateMachine, encode_record};
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::catalog::Catalog;
use proto::model::data_set::Files;
use proto::model::identity::{ClusterId, UniqueId};
use proto::model::ids::{
    BucketId, Generation, IndexId, NodeId, TokenId, TopologyNo, UserId, VbucketId,
};
use proto::model::index::{IndexInfo, IndexSpec, IndexState};
use proto::model::node::{NodeInfo, Role};
use proto::model::topology::IndexTopology;
use proto::model::users::{
    GrantOn, HashedToken, NewSecret, Privilege, Privileges, Secret32, User, UserCommand, Users,
};
use proto::rpc::command::{
    BuildIndexes, CancelMoves, Command, CreateBucket, CreateDataSet, CreateIndex, DrainNode,
    DropBucket, DropIndex, HandOver, IndexReady, LoadVersion, MoveBucket, Proposal, RegisterNode,
    RequestId, SetReplicas, SetSliceBytesMax,
};
use proto::rpc::scan::{Output, ScanRequest};
use sextant::auth::users_file::StoredUsers;
use sextant::auth::verifier::{ITERATIONS, derive};
use sextant::sql::ast::Statement;
use sextant::sql::definitions::define::definition;

/// The definition of the index of all targets.
const CITIES: &str = "CREATE INDEX cities ON b (country, population::int8 DESC, lower(name)) \
    INCLUDE (address.zip, tags) WHERE kind = 'city'";

/// The checksum of the product's text files.
pub fn crc32c(bytes: &[u8]) -> u32 {
    bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    }) ^ !0
}

/// The definition that a statement makes.
pub fn spec(sql: &str) -> IndexSpec {
    let parsed = sextant::sql::parse(sql).map(|parsed| parsed.into_iter().next());
    match parsed.map(|first| first.map(|first| first.statement)) {
        Ok(Some(Statement::CreateIndex(create))) => definition(&create).expect("a definition"),
        other => panic!("{sql}: {other:?}"),
    }
}

/// The index of all targets.
pub static INDEX: LazyLock<Arc<IndexInfo>> = LazyLock::new(|| {
    let placement = vec![vec![NodeId(3)]; 8];
    Arc::new(IndexInfo {
        id: IndexId(4),
        bucket: BucketId(1),
        spec: Arc::new(spec(CITIES)),
        state: IndexState::Maintenance,
        generation: Generation(1),
        topology: Arc::new(IndexTopology { number: TopologyNo(1), placement }),
        moves: Vec::new(),
        revision: 0,
        defined: 0,
    })
});

/// The bucket of that index.
pub static BUCKET: LazyLock<Arc<BucketInfo>> = LazyLock::new(|| {
    Arc::new(BucketInfo::new(BucketId(1), "b", 4, SourceKind::Embedded, NodeId(2)))
});

/// A scan of this index.
pub static SCAN: LazyLock<ScanRequest> = LazyLock::new(|| ScanRequest {
    index: INDEX.local_id(),
    ranges: Arc::default(),
    partitions: None,
    filter: INDEX.spec.predicate.clone().map(Arc::new),
    reverse: false,
    ordered: true,
    distinct_parts: None,
    limit: Some(10),
    offset: 0,
    output: Output::Rows { include: true },
    consistency: Default::default(),
    own: None,
    timeout_ms: 1_000,
    hedge_after: Default::default(),
});

/// A user with a password and a token, and one with neither.
pub static USERS: LazyLock<Users> = LazyLock::new(|| {
    let salt = *b"[m\x99h\x9d\x12\x35\x8e\xec\xa0\x4b\x14\x12\x36\xfa\x81";
    let token = HashedToken { id: TokenId(1), sha256: Secret32::new([5; 32]), until_unix_ms: 9 };
    let user = User {
        id: UserId(1),
        name: "user".into(),
        verifier: Some(derive("pencil", salt, ITERATIONS)),
        until_unix_ms: None,
        tokens: vec![token],
        grants: Default::default(),
        limits: Default::default(),
        secret_no: 3,
    };
    let bare = User {
        name: "bare".into(),
        id: UserId(2),
        verifier: None,
        tokens: Vec::new(),
        ..user.clone()
    };
    let by_name = [user, bare].map(|user| (user.name.clone(), Arc::new(user))).into();
    Users { cas: 7, last_user: UserId(2), last_token: TokenId(1), by_name, ..Users::default() }
});

/// Returns a catalog with the bucket and the index.
pub fn catalog() -> Catalog {
    let mut catalog = Catalog { cas: 9, cluster: Some(ClusterId(7)), ..Catalog::default() };
    catalog.buckets.insert(BUCKET.id, Arc::clone(&BUCKET));
    catalog.indexes.insert(INDEX.id, Arc::clone(&INDEX));
    for (id, role) in NODES {
        catalog.nodes.insert(id, Arc::new(node(id, role)));
    }
    catalog
}

/// Returns sample contents of the file USERS.
pub fn users_file() -> Vec<u8> {
    let kept = StoredUsers { cluster: ClusterId(7), users: Arc::new(USERS.clone()) };
    // The target corrects the head, which has the length of a real one.
    let mut bytes = b"sextant users 1\n".to_vec();
    bytes.extend_from_slice(&[0; 12]);
    bytes.extend_from_slice(&postcard::to_stdvec(&kept).expect("it can be encoded"));
    bytes
}

const NODES: [(NodeId, Role); 6] = [
    (NodeId(1), Role::Coordinator),
    (NodeId(2), Role::Projector),
    (NodeId(12), Role::Projector),
    (NodeId(3), Role::Indexer),
    (NodeId(4), Role::Indexer),
    (NodeId(5), Role::Router),
];

fn node(id: NodeId, role: Role) -> NodeInfo {
    NodeInfo { id, role, address: format!("node-{id}:7000"), zone: format!("z{}", id.0 % 2) }
}

/// Returns commands of users, operators and leaders, in an order in which most of them are
/// accepted.
pub fn commands() -> Vec<Command> {
    let mut commands: Vec<_> = NODES[1..]
        .iter()
        .map(|(id, role)| Command::RegisterNode(RegisterNode { node: node(*id, *role) }))
        .collect();
    let bucket = |name: &str, source, copies| {
        Command::CreateBucket(CreateBucket {
            name: name.into(),
            vbuckets: 4,
            source,
            projectors: 1,
            copies,
            if_not_exists: false,
        })
    };
    // Buckets and indexes are numbered in the order of their creation.
    let (b, p, d, cities, by_id) = (BucketId(1), BucketId(2), BucketId(3), IndexId(1), IndexId(2));
    let index = |bucket, sql: &str, defer_build| {
        let (spec, if_not_exists) = (spec(sql), false);
        Command::CreateIndex(CreateIndex { bucket, spec, defer_build, if_not_exists })
    };
    commands.push(bucket("b", SourceKind::Embedded, Some(2)));
    commands.push(bucket("p", SourceKind::Push, None));
    for drain in [true, false] {
        commands.push(Command::DrainNode(DrainNode { node: NodeId(4), drain }));
    }
    commands.push(index(b, CITIES, false));
    commands.push(index(
        p,
        "CREATE INDEX by_id ON p (META().id) WITH (slices = 2, replicas = 1)",
        true,
    ));
    commands.push(Command::BuildIndexes(BuildIndexes { indexes: vec![by_id] }));
    commands.push(Command::IndexReady(IndexReady { index: cities, generation: Generation(1) }));
    commands.push(Command::SetReplicas(SetReplicas { index: cities, replicas: 1 }));
    commands.push(Command::CancelMoves(CancelMoves { index: None }));
    commands.push(Command::HandOver(HandOver {
        bucket: p,
        vbuckets: vec![VbucketId(0)],
        to: NodeId(12),
    }));
    commands.push(Command::MoveBucket(MoveBucket { bucket: b, to: NodeId(12) }));
    commands.push(Command::CreateDataSet(CreateDataSet {
        name: "d".into(),
        partitions: 2,
        replication: 1,
        idle_ms: 1_000,
        if_not_exists: false,
    }));
    let files = Files { pattern: "x-*.csv".into(), id: "id".into() };
    commands.push(Command::LoadVersion(LoadVersion {
        bucket: d,
        version: "v1".into(),
        files,
        allow_empty: true,
    }));
    commands.push(Command::SetSliceBytesMax(SetSliceBytesMax { index: cities, bytes: 1 << 20 }));
    commands.extend(user_commands().map(|command| Command::Users(Box::new(command))));
    commands.push(Command::DropIndex(DropIndex { index: cities }));
    commands.push(Command::DropBucket(DropBucket { bucket: b, restrict: true }));
    commands
}

fn user_commands() -> [UserCommand; 5] {
    let verifier = derive("pencil", [4; 16], ITERATIONS);
    let password = NewSecret::Password { verifier, until_unix_ms: Some(1 << 40) };
    let create = |name: &str, secret, first| UserCommand::Create {
        name: name.into(),
        secret,
        limits: Default::default(),
        fresh: Secret32::new([8; 32]),
        first,
    };
    let privileges: Privileges = [Privilege::Scan].into_iter().collect();
    let (user, on) = ("ada".to_owned(), GrantOn::Bucket(BucketId(1)));
    [
        create("root", Some(password), true),
        create("ada", None, false),
        UserCommand::Grant { user: user.clone(), privileges, on: on.clone() },
        UserCommand::Revoke { user, privileges, on },
        UserCommand::Drop { name: "ada".into(), if_exists: false },
    ]
}

/// Returns records of the coordinators' log with these commands.
pub fn records() -> Vec<Vec<u8>> {
    let record = |(command, n): (Command, u64)| {
        let request = (n % 3 == 0).then_some(RequestId { client: 5, sequence: n });
        let unique = if command.creates() { UniqueId(n.into()) } else { UniqueId::default() };
        let silent = if n % 4 == 0 { vec![NodeId(4)] } else { Vec::new() };
        let decided = Decisions { unix_ms: 1_000 * n, unique, silent, ..Decisions::default() };
        let proposal = Proposal { request, ..Proposal::from(command) };
        encode_record(decided, proposal).expect("it can be encoded").to_vec()
    };
    commands().into_iter().zip(1..).map(record).collect()
}

/// Returns the encoded state after each fifth record.
pub fn states() -> Vec<Vec<u8>> {
    let mut machine = Machine(Replica::new());
    let mut states = vec![machine.snapshot().expect("it can be encoded")];
    for (record, n) in records().iter().zip(1..) {
        machine.apply(n, record).expect("a record of this build");
        if n % 5 == 0 {
            states.push(machine.snapshot().expect("it can be encoded"));
        }
    }
    states
}

/// The state to which records are applied, with nodes, buckets and indexes.
pub static STATE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut machine = Machine(Replica::new());
    for (record, n) in records().iter().take(16).zip(1..) {
        machine.apply(n, record).expect("a record of this build");
    }
    machine.snapshot().expect("it can be encoded")
});
