//! Targets for bytes from clients: SQL, PostgreSQL's protocol, gRPC, tokens and certificates.

use std::fmt::Write;

use prost::Message;
use proto::expr::ColumnType;
use proto::grpc::document_write::Kind;
use proto::grpc::{
    CommitPushRequest, DocumentWrite, MutationsRequest, PushMutation, PushRequest, PushedPart,
    ScanRequest, VbucketPosition, WriteRequest,
};
use proto::model::ids::{Epoch, NodeId, SliceNo, TopologyNo};
use proto::value::Value;
use router::{Token, VirtualScan};
use sextant::sql::ast::Statement;
use sextant::sql::definitions::define::definition;
use sextant::sql::plan::{Plan, Relation, resolve};

use super::certificates::certificates;
use super::statements::{WORDS, selects, statements};
use super::target::Target;
use super::world::{BUCKET, INDEX, SCAN, USERS};

/// The targets that read input of clients.
pub const TARGETS: &[Target] = &[
    Target::new("startup", sextant::pg::fuzz::startup, startups).with_words(&[
        "user\0",
        "options\0",
        "-c ",
        "consistency=",
        "database\0",
        "_pq_.",
        "at_plus=1:0/1/2",
    ]),
    Target::new("login", |data| sextant::pg::fuzz::login(&USERS, data), logins).with_words(&[
        "n,,",
        "y,,",
        "p=tls-server-end-point,,",
        "n=",
        "r=",
        "c=biws",
        "m=",
        ",p=",
        "a=",
    ]),
    Target::new("pg_message", sextant::pg::fuzz::message, messages).with_words(WORDS),
    Target::new("session", sextant::pg::fuzz::session, sessions)
        .with_words(WORDS)
        .with_bytes_each(1 << 11)
        .with_share(0.3),
    Target::new("sql", sql, statements).with_words(WORDS).with_bytes_each(1 << 12),
    Target::new("plan", plan, selects).with_words(WORDS).with_bytes_each(1 << 14).with_share(0.5),
    Target::new("parameter", sextant::pg::fuzz::parameter_value, parameters).with_words(&[
        "NaN",
        "1e308",
        "-0",
        "true",
        "9223372036854775807",
        "0.1",
    ]),
    Target::new("copy_lines", sextant::pg::fuzz::copy_lines, copies).with_words(&[
        "\n",
        "\\.",
        "\r\n",
        "{\"id\":\"",
        "\u{feff}",
        "\"id\":",
        "null",
        "\\ud800",
    ]),
    Target::new("grpc_request", grpc_request, grpc_requests)
        .with_words(WORDS)
        .with_bytes_each(1 << 12),
    Target::new("scan_token", |data| router::fuzz::token(&INDEX, &SCAN, data), tokens),
    Target::new("access_token", |data| sextant::auth::fuzz::token(&USERS, data), access_tokens)
        .with_words(&["sxt_", "_", "SCRAM-SHA-256$", "4096", ":", "$", "="]),
    Target::new("certificate", sextant::tls::fuzz::certificate, || {
        certificates().map(|(der, _)| der).into()
    }),
    Target::new("holder", sextant::tls::fuzz::holder, holders).with_words(&[
        "sextant://",
        "/user/",
        "/operator",
        "/indexer/",
        "%2F",
        "%",
        "+1",
    ]),
    Target::new("pem", sextant::tls::fuzz::pem, || certificates().map(|(_, pem)| pem).into())
        .with_words(&[
            "-----BEGIN ",
            "-----END ",
            "CERTIFICATE-----",
            "PRIVATE KEY-----",
            "\n",
            "==",
            "EC ",
        ]),
];

fn startup(choice: u8, code: u32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![choice];
    bytes.extend_from_slice(&(rest.len() as u32 + 8).to_be_bytes());
    bytes.extend_from_slice(&code.to_be_bytes());
    bytes.extend_from_slice(rest);
    bytes
}

fn startups() -> Vec<Vec<u8>> {
    let (plain, options) =
        (&b"user\0me\0\0"[..], &b"user\0me\0options\0-c consistency=request_plus\0a\0b\0\0"[..]);
    let mut asked = startup(0, 80_877_103, b"");
    asked.extend_from_slice(&startup(0, 3 << 16, plain)[1..]);
    vec![
        startup(0, 3 << 16, plain),
        startup(2, (3 << 16) + 2, b"user\0me\0_pq_.x\x001\0\0"),
        startup(1, 3 << 16, options),
        startup(0, 80_877_102, &[0, 0, 0, 1, 0, 0, 0, 2]),
        startup(1, 80_877_103, b""),
        asked,
    ]
}

/// Returns the messages of the exchange in RFC 7677, and of one that is bound to the connection.
fn logins() -> Vec<Vec<u8>> {
    let exchange = |choice: u8, mechanism: &str, first: &str, last: &str| {
        let mut initial = [mechanism.as_bytes(), b"\0"].concat();
        initial.extend_from_slice(&(first.len() as u32).to_be_bytes());
        initial.extend_from_slice(first.as_bytes());
        let length = (initial.len() as u16).to_be_bytes();
        [&[choice][..], &length, &initial, last.as_bytes()].concat()
    };
    let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    let proof = "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    let last = format!("c=biws,r={nonce},{proof}");
    let bound = "p=tls-server-end-point,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    vec![
        exchange(0, "SCRAM-SHA-256", "n,,n=user,r=rOprNGfwEbeRWgbNEkqO", &last),
        exchange(2, "SCRAM-SHA-256", "n,,n=user,r=rOprNGfwEbeRWgbNEkqO", &last),
        exchange(1, "SCRAM-SHA-256-PLUS", bound, &last),
    ]
}

/// Messages of a session, each with its type and its body.
const MESSAGES: [(u8, &[u8]); 14] = [
    (b'Q', b"SELECT country, count(*) FROM cities WHERE country = 'DE'; SHOW ALL\0"),
    (b'P', b"s\0SELECT * FROM cities WHERE country = $1 LIMIT $2\0\0\x02\0\0\0\x19\0\0\0\x14"),
    (b'B', b"p\0s\0\0\x02\0\0\0\x01\0\x02\0\0\0\x02DE\0\0\0\x08\0\0\0\0\0\0\0\x09\0\x01\0\x01"),
    (b'D', b"Ss\0"),
    (b'D', b"Pp\0"),
    (b'E', b"p\0\0\0\0\x01"),
    (b'E', b"p\0\0\0\0\0"),
    (b'C', b"Pp\0"),
    (b'H', b""),
    (b'S', b""),
    (b'Q', b"COPY b FROM STDIN\0"),
    (b'd', b"{\"id\":\"7\",\"country\":\"DE\"}\n"),
    (b'c', b""),
    (b'f', b"no\0"),
];

fn messages() -> Vec<Vec<u8>> {
    MESSAGES.iter().map(|(kind, body)| [&[*kind][..], body].concat()).collect()
}

/// Returns sessions: with all messages, with statements in a transaction, and with raw bytes.
fn sessions() -> Vec<Vec<u8>> {
    let put = |out: &mut Vec<u8>, kind: u8, body: &[u8]| {
        out.push(kind);
        out.extend_from_slice(&(body.len() as u16).to_be_bytes());
        out.extend_from_slice(body);
    };
    let mut all = vec![1];
    MESSAGES.iter().for_each(|(kind, body)| put(&mut all, *kind, body));
    let mut transaction = vec![1];
    for sql in [
        "BEGIN",
        "INSERT INTO b (id, doc) VALUES ('9', '{\"country\":\"FR\"}')",
        "SAVEPOINT s",
        "DELETE FROM b WHERE META().id = '9'",
        "ROLLBACK TO s",
        "SELECT doc FROM b WHERE META().id = '1'",
        "SELECT name FROM cities ORDER BY country DESC",
        "COMMIT",
        "COPY (SELECT * FROM cities) TO STDOUT",
        "EXPLAIN SELECT sum(population) FROM cities",
    ] {
        put(&mut transaction, b'Q', [sql.as_bytes(), b"\0"].concat().as_slice());
    }
    let mut raw = vec![0];
    for (kind, body) in MESSAGES {
        raw.push(kind);
        raw.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        raw.extend_from_slice(body);
    }
    let mut prepared = vec![1];
    MESSAGES[1..10].iter().for_each(|(kind, body)| put(&mut prepared, *kind, body));
    vec![all, transaction, raw, prepared]
}

/// Parses a text. If the text defines an index, its printed expressions must have an equal meaning
/// when they are parsed again.
fn sql(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(parsed) = sextant::sql::parse(text) else { return };
    for statement in parsed {
        assert!(statement.start <= text.len(), "a statement begins in the text");
        let Statement::CreateIndex(create) = statement.statement else { continue };
        let Ok(spec) = definition(&create) else { continue };
        let keys = spec.keys.iter().map(|key| &key.expr).chain(&spec.predicate);
        for expr in keys.chain(spec.include.iter().map(|column| &column.expr)) {
            let _printed = expr.to_string();
        }
    }
}

/// Plans a SELECT from an index, from a bucket, and without FROM.
fn plan(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(parsed) = sextant::sql::parse(text) else { return };
    let relations =
        [Some(Relation::Index(INDEX.clone())), Some(Relation::Bucket(BUCKET.clone())), None];
    for statement in parsed {
        let Statement::Select(select) = statement.statement else { continue };
        for relation in &relations {
            let Ok(resolved) = resolve(&select, relation.as_ref()) else { continue };
            let types = resolved.parameter_types(statement.parameters);
            let values: Vec<Value> = types.iter().map(value_of).collect();
            let plan = resolved.plan(&values);
            if let Ok(Plan::Index(plan)) = &plan {
                let ranges = &plan.request.ranges;
                let is_sorted = ranges
                    .windows(2)
                    .all(|two| two[0].high.as_ref().is_some_and(|high| *high <= two[1].low));
                assert!(is_sorted, "ranges are ascending and disjoint: {ranges:?}");
            }
            let _ = plan.map(|plan| plan.explain().len());
        }
    }
}

fn value_of(column_type: &ColumnType) -> Value {
    match column_type {
        ColumnType::Text => Value::from("DE"),
        ColumnType::Bool => Value::Bool(true),
        ColumnType::Int4 | ColumnType::Int8 => Value::int(7),
        ColumnType::Float8 | ColumnType::Numeric => Value::float(1.5),
    }
}

fn parameters() -> Vec<Vec<u8>> {
    let values: [(u8, u8, &[u8]); 14] = [
        (0, 0, b"true"),
        (1, 1, &[0, 7]),
        (2, 0, b" 42"),
        (3, 1, &[0xff; 8]),
        (4, 1, &[0, 0, 0, 25]),
        (5, 1, &[0x3f, 0x80, 0, 0]),
        (6, 0, b"1.5e3"),
        (7, 1, &[0, 2, 0, 0, 0, 0, 0, 2, 0, 12, 3, 0]),
        (7, 0, b"-123.456"),
        (8, 0, b"text"),
        (12, 1, b"{}"),
        (13, 1, b"\x01{\"a\":1}"),
        (15, 0, b"2020-01-01"),
        (16, 1, &[0; 20]),
    ];
    values.iter().map(|(kind, format, value)| [&[*kind, *format][..], value].concat()).collect()
}

fn copies() -> Vec<Vec<u8>> {
    let line = "{\"id\":\"1\", \"a\":[1,2.5,\"x\\n\"], \"b\":{\"c\":null}}\r\n";
    let (once, many) =
        (format!("\x01\u{feff}{line}\n  {line}\\.\nrest"), format!("\x40{}", line.repeat(40)));
    vec![once.into_bytes(), many.into_bytes(), b"\x03{\"id\":5}".to_vec()]
}

fn grpc_request(data: &[u8]) {
    use sextant::grpc::fuzz;
    let Some((&kind, message)) = data.split_first() else { return };
    match kind % 5 {
        0 => WriteRequest::decode(message).map(|request| fuzz::writes(request.writes)),
        1 => MutationsRequest::decode(message).map(|request| fuzz::writes(request.writes)),
        2 => PushRequest::decode(message).map(fuzz::push),
        3 => CommitPushRequest::decode(message).map(fuzz::commit_push),
        _ => ScanRequest::decode(message).map(|request| fuzz::scan(&request)),
    }
    .unwrap_or_default();
}

fn grpc_requests() -> Vec<Vec<u8>> {
    let encoded = |kind: u8, message: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = vec![kind];
        message(&mut bytes);
        bytes
    };
    let write = |kind| DocumentWrite { id: "a".into(), kind };
    let writes = vec![
        write(Some(Kind::Insert(b"{}".to_vec().into()))),
        write(Some(Kind::Delete(true))),
        write(None),
    ];
    let write = WriteRequest { bucket: "b".into(), writes };
    let mutation = PushMutation {
        vbucket: 1,
        vbuuid: 9,
        seqno: 5,
        id: "a".into(),
        document: Some(b"{}".to_vec().into()),
        position: 0,
    };
    let branch = VbucketPosition { vbucket: 3, vbuuid: 4, seqno: 5 };
    let push = PushRequest {
        bucket: "p".into(),
        mutations: vec![mutation],
        branches: vec![branch],
        ..Default::default()
    };
    let part = PushedPart { vbucket: 1, vbuuid: 9, seqno: 5, mutations: 2 };
    let commit = CommitPushRequest { parts: vec![part], ..Default::default() };
    let scan = ScanRequest {
        index: "cities".into(),
        columns: vec!["country".into(), "population / 2".into()],
        r#where: "country = 'DE' AND population > 5".into(),
        limit: Some(10),
        at_plus: "1:0/a0/7,1/b/8".into(),
        ..Default::default()
    };
    vec![
        encoded(0, &|out| write.encode(out).unwrap_or_default()),
        encoded(2, &|out| push.encode(out).unwrap_or_default()),
        encoded(3, &|out| commit.encode(out).unwrap_or_default()),
        encoded(4, &|out| scan.encode(out).unwrap_or_default()),
    ]
}

/// Returns the bodies of continuation tokens, and a whole token as text.
fn tokens() -> Vec<Vec<u8>> {
    let moved = |n| VirtualScan {
        slice: SliceNo(n),
        node: NodeId(3),
        resume_after: (n == 1).then(|| b"\x40DE\0id".to_vec().into()),
        done: n == 0,
    };
    let token = Token {
        index: INDEX.id,
        generation: INDEX.generation,
        epoch: Epoch(77),
        base_topology: TopologyNo(1),
        request_hash: 99,
        shards_done: 2,
        resume_after: Some(b"\x40AT\0x".to_vec().into()),
        virtual_scans: vec![moved(0), moved(1)],
        limit_left: Some(5),
        offset_left: 0,
    };
    let text = token.encode().unwrap_or_default().into_bytes();
    vec![postcard::to_stdvec(&token).unwrap_or_default(), text]
}

fn access_tokens() -> Vec<Vec<u8>> {
    let mut verifier = String::new();
    if let Some(user) = USERS.find_by_name("user").and_then(|user| user.verifier.as_ref()) {
        let _ = write!(verifier, "{}", sextant::auth::verifier::text(user));
    }
    let token = format!("sxt_1_{}", "A".repeat(43));
    vec![token.into_bytes(), verifier.into_bytes()]
}

fn holders() -> Vec<Vec<u8>> {
    let cluster = "000000000000000000000000000000ab";
    ["operator", "user/ada", "user/a%2Fb%25c", "indexer/201", "router/1"]
        .map(|holder| format!("sextant://{cluster}/{holder}").into_bytes())
        .into()
}
