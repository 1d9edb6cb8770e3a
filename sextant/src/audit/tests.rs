use std::path::PathBuf;

use proto::env::sim::{SimClock, SimFs, world};
use proto::env::{FileSystem, OpenMode};
use proto::model::ids::UserId;
use serde_json::Value;

use super::writer::REFUSALS_PER_S;
use super::*;
use crate::principal::{LoggedInUser, Proof};

const NODE: NodeId = NodeId(301);
pub(super) const MIB: u64 = 1 << 20;

pub(super) struct World {
    env: Env,
    clock: Arc<SimClock>,
    pub(super) fs: SimFs,
    pub(super) dir: PathBuf,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let (env, clock, fs) = world(seed);
        Self { env, clock, fs, dir: PathBuf::from("/data") }
    }

    pub(super) async fn audit(&self, bytes_max: u64) -> Audit {
        Audit::open(&self.env, &self.dir, bytes_max, NODE).await.expect("an audit")
    }

    pub(super) fn text(&self, name: &str) -> String {
        let Ok(file) = self.fs.open(&self.dir.join(name), OpenMode::Read) else {
            return String::new();
        };
        let mut bytes = vec![0; file.len().expect("a length") as usize];
        file.read_exact_at(&mut bytes, 0).expect("its bytes");
        String::from_utf8(bytes).expect("UTF-8")
    }

    pub(super) fn bytes(&self, name: &str) -> u64 {
        let file = self.fs.open(&self.dir.join(name), OpenMode::Read);
        file.map_or(0, |file| file.len().expect("a length"))
    }

    /// Returns the lines, without those about the process.
    pub(super) fn lines(&self) -> Vec<Value> {
        self.of("audit.jsonl")
    }

    fn refusals(&self) -> Vec<Value> {
        self.of("refused.jsonl")
    }

    fn of(&self, name: &str) -> Vec<Value> {
        let text = self.text(name);
        let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        lines.filter(|line: &Value| line["what"] != "process").collect()
    }
}

impl Audit {
    /// Writes the first line of a change.
    async fn begun(&self, principal: &Principal, door: PortProtocol) -> Result<Attempt> {
        let attempt = self.attempt(principal, door, DROP);
        attempt.begin().await.map(|()| attempt)
    }

    /// Writes both lines of a change.
    pub(super) async fn changed(&self) {
        let attempt = self.begun(&ada(), PortProtocol::Sql).await.expect("a line");
        attempt.note_change_made();
        attempt.end(None).await;
    }
}

fn ada() -> Principal {
    let from = Some("10.0.0.7:4242".parse().expect("an address"));
    Principal::User(Arc::new(LoggedInUser::new(
        UserId(3),
        "ada".to_owned(),
        Proof::Password(1),
        from,
    )))
}

/// Lets the writer write the lines for which no caller waits.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

const DROP: (EventKind, &str) = (EventKind::Ddl, "DROP INDEX by_n");

#[tokio::test(start_paused = true)]
async fn a_change_has_a_line_before_it_and_one_with_its_outcome() {
    let world = World::new(1);
    let audit = world.audit(MIB).await;
    let entry = audit.begun(&ada(), PortProtocol::Sql).await.expect("a line");
    let [began] = &world.lines()[..] else { panic!("{:?}", world.lines()) };
    let event = began["event"].as_str().expect("a number").to_owned();
    assert_eq!(event.len(), 16);
    let wanted = format!(
        r#"{{"at":"2024-01-01T00:00:00.000Z","node":301,"event":"{event}","what":"ddl","outcome":"began","user":"ada","by":"password","from":"10.0.0.7:4242","door":"sql","statement":"DROP INDEX by_n"}}"#
    );
    assert!(world.text("audit.jsonl").contains(&wanted), "{}", world.text("audit.jsonl"));
    world.clock.advance(250);
    entry.end(None).await;
    let lines = world.lines();
    assert_eq!(lines[1]["outcome"], "done");
    assert_eq!(lines[1]["at"], "2024-01-01T00:00:00.250Z");
    assert_eq!(lines[1]["event"], *event);
    assert_eq!(lines[1].get("statement"), None, "the first line has it");
    let entry = audit.begun(&Principal::Trusted, PortProtocol::Grpc).await.expect("a line");
    entry.end(Some(ErrorCode::NotAllowed)).await;
    let lines = world.lines();
    assert_eq!(lines[3]["outcome"], "42501");
    assert_eq!((lines[3]["by"].as_str(), lines[3].get("user")), (Some("trust"), None));
    assert_ne!(lines[3]["event"], *event);
    drop(audit.begun(&ada(), PortProtocol::Sql).await.expect("a line"));
    settle().await;
    assert_eq!(world.lines()[5]["outcome"], "left", "the client has gone away");
    let entry = audit.begun(&ada(), PortProtocol::Sql).await.expect("a line");
    entry.begin().await.expect("it has begun");
    entry.end(Some(ErrorCode::Unavailable)).await;
    let lines = world.lines();
    assert_eq!(
        (lines[7]["outcome"].as_str(), lines[7]["error"].as_str()),
        (Some("unknown"), Some("57P03"))
    );
    let entry = audit.begun(&ada(), PortProtocol::Sql).await.expect("a line");
    entry.note_change_made();
    entry.end(Some(ErrorCode::BuildCancelled)).await;
    let lines = world.lines();
    assert_eq!(
        (lines[9]["outcome"].as_str(), lines[9]["error"].as_str()),
        (Some("done"), Some("57014"))
    );
    assert_eq!(lines.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_is_a_refusal_and_pushes_no_change_out() {
    let world = World::new(6);
    let audit = world.audit(MIB).await;
    audit.attempt(&ada(), PortProtocol::Sql, DROP).end(None).await;
    for _ in 0..30 {
        let refused = audit.attempt(&ada(), PortProtocol::Sql, DROP);
        refused.end(Some(ErrorCode::NotAllowed)).await;
        settle().await;
    }
    assert!(world.lines().is_empty(), "nothing was changed");
    let refusals = world.refusals();
    assert_eq!(refusals.len(), REFUSALS_PER_S as usize);
    assert_eq!(refusals[0]["outcome"], "42501");
    assert_eq!(refusals[0]["statement"], DROP.1);
    assert_eq!(refusals[0].get("event"), None);
}

/// A file system with a hanging disk: its calls never return.
struct Hangs;

impl proto::env::Spawner for Hangs {
    fn spawn(&self, name: &'static str, future: proto::env::BoxFuture<()>) -> Task {
        proto::env::sim::InlineSpawner.spawn(name, future)
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        // The caller of the call waits for ever.
        std::mem::forget(work);
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_hangs_refuses_changes_in_time() {
    let world = World::new(7);
    let mut env = world.env.clone();
    let file = AuditFile::new(&env, &world.dir, "audit", MIB);
    file.prepare().expect("a directory");
    env.spawner = Arc::new(Hangs);
    let (requests, waiting) = async_channel::bounded(WAITING_MAX);
    let facts = FactsFile::new(&env, &world.dir);
    let writer = Writer::new(&env, [file.clone(), file], NODE, waiting).run();
    let writer = env.spawn_service("audit", writer);
    let audit =
        Audit(Some(Arc::new(AuditFiles { env, node: NODE, facts, requests, _writer: writer })));
    let began = tokio::time::Instant::now();
    let refused = audit.begun(&ada(), PortProtocol::Sql).await.err().expect("no line");
    assert_eq!((refused.code, began.elapsed()), (ErrorCode::Io, WITHIN));
    assert!(refused.message.contains("does not answer"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_survives_a_crash() {
    for seed in 0..40 {
        let world = World::new(seed);
        let audit = world.audit(MIB).await;
        audit.changed().await;
        let next = audit.begun(&ada(), PortProtocol::Sql).await.expect("a line");
        world.fs.crash();
        world.fs.restart();
        drop((audit, next));
        let audit = world.audit(MIB).await;
        audit.changed().await;
        let outcomes: Vec<_> = world.lines().iter().map(|line| line["outcome"].clone()).collect();
        assert_eq!(outcomes, ["began", "done", "began", "began", "done"], "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_refuses_changes_until_there_is_room() {
    let world = World::new(2);
    let audit = world.audit(MIB).await;
    let under_way = audit.begun(&ada(), PortProtocol::Sql).await.expect("a line");
    world.fs.set_capacity(world.text("audit.jsonl").len() as u64 + 20);
    let refused = audit.begun(&ada(), PortProtocol::Sql).await.err().expect("no room");
    assert_eq!(refused.code, ErrorCode::Io);
    assert!(refused.message.contains("/data/audit.jsonl"), "{refused}");
    assert!(refused.hint.is_some_and(|hint| hint.contains("are refused until")));
    under_way.end(None).await;
    audit.login_failed(None, PortProtocol::Sql, Some("eve"), "28P01");
    settle().await;
    assert_eq!(world.lines().len(), 1, "no part of a line is left");
    world.fs.set_capacity(u64::MAX);
    audit.changed().await;
    assert_eq!(world.lines().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn failed_log_ins_of_a_flood_are_summed() {
    let world = World::new(3);
    let audit = world.audit(MIB).await;
    let from = Some("10.0.0.9:1".parse().expect("an address"));
    for n in 0..200 {
        let name = format!("{}{n}", "e".repeat(80));
        audit.login_failed(from, PortProtocol::Sql, Some(&name), "28P01");
        settle().await;
    }
    let lines = world.refusals();
    assert!(world.lines().is_empty());
    assert_eq!(lines.len(), REFUSALS_PER_S as usize);
    assert_eq!(
        (lines[0]["what"].as_str(), lines[0]["outcome"].as_str()),
        (Some("login"), Some("28P01"))
    );
    assert_eq!(lines[0]["user"].as_str().map(str::len), Some(64), "a long name is cut");
    assert_eq!(lines[0]["from"], "10.0.0.9:1");
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    settle().await;
    let lines = world.refusals();
    let last = lines.last().expect("a line");
    assert_eq!((last["outcome"].as_str(), last["count"].as_u64()), (Some("left out"), Some(190)));
    audit.login_failed(from, PortProtocol::Http, None, "28000");
    settle().await;
    assert_eq!(world.refusals().len(), lines.len() + 1, "the next second");
}

#[tokio::test(start_paused = true)]
async fn two_files_have_the_newest_changes() {
    let world = World::new(4);
    let audit = world.audit(16_000).await;
    for _ in 0..60 {
        audit.changed().await;
        let (new, old) = (world.text("audit.jsonl"), world.text("audit.1.jsonl"));
        assert!(new.len() <= 6_000 && old.len() <= 6_000, "{} and {}", new.len(), old.len());
        assert!(new.lines().count() + old.lines().count() > 0);
    }
    assert!(!world.text("audit.1.jsonl").is_empty());
    // A crash may cut the last line of a file that another program has written to.
    let file = world.fs.open(&world.dir.join("audit.jsonl"), OpenMode::ReadWrite).expect("a file");
    let len = file.len().expect("a length");
    file.write_all_at(b"{\"at\":", len).expect("a part");
    drop(audit);
    let audit = world.audit(MIB).await;
    audit.changed().await;
    let text = world.text("audit.jsonl");
    let whole = text.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok());
    assert_eq!(whole.count() + 1, text.lines().count(), "one line is cut");
}

#[tokio::test]
async fn an_audit_that_is_off_writes_nothing() {
    let audit = Audit::off();
    audit.changed().await;
    audit.login_failed(None, PortProtocol::Grpc, None, "28P01");
}
