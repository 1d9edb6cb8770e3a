//! Tests moves of slices between processes as operators run them: a node joins, others are drained
//! and removed, and the source, the target and the leading coordinator are killed during moves.
//! Meanwhile a writer moves amounts between accounts, an index is created and dropped repeatedly,
//! and scanners check that each scan shows one epoch and every entry once.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes: real clocks, sockets and tasks"
)]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tests::harness::processes::Processes;
use tests::harness::{connect, sql};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

const ACCOUNTS: u64 = 3_000;
const AMOUNT: i64 = 1_000;
/// The time limit of moves in a debug build on a busy machine while members are killed.
const PATIENCE: Duration = Duration::from_secs(40);

/// The values of a row of SHOW MOVES.
#[derive(Clone, Debug)]
struct Move {
    index: String,
    slice: String,
    from: Option<u64>,
    to: Option<u64>,
    stage: String,
    note: String,
}

impl Move {
    fn is_under_way(&self) -> bool {
        matches!(&*self.stage, "start" | "pending" | "catchup")
    }

    fn described(&self) -> String {
        let Self { index, slice, from, to, stage, note } = self;
        format!("{index} slice {slice} from {from:?} to {to:?}: {stage} {note}")
    }

    fn is_at_work(&self) -> bool {
        matches!(&*self.stage, "pending" | "catchup")
    }
}

async fn moves(client: &Client) -> BTreeMap<u64, Move> {
    // Without a leader there is no answer for a moment.
    let rows = sql::simple(client, "SHOW MOVES").await.unwrap_or_default();
    let row = |row: &Vec<Option<String>>| {
        let text = |n: usize| row[n].clone().unwrap_or_default();
        let number = |n: usize| row[n].as_ref().and_then(|text| text.parse().ok());
        let mv = Move {
            index: text(1),
            slice: text(2),
            from: number(3),
            to: number(4),
            stage: text(5),
            note: text(9),
        };
        (number(0).expect("the number of a move"), mv)
    };
    rows.iter().map(row).collect()
}

/// Polls until `look` returns a value, with a time limit for a busy machine.
async fn wait<T>(what: &str, client: &Client, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        if begun.elapsed() > PATIENCE {
            let moves = moves(client).await;
            let moves: Vec<_> = moves.values().map(|m| format!("\n{}", m.described())).collect();
            panic!("not within {PATIENCE:?}: {what}; moves: {}", moves.concat());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a move for which `meant` returns true has begun its work.
async fn at_work(client: &Client, what: &str, meant: impl Fn(&Move) -> bool) {
    wait(what, client, async || {
        let moves = moves(client).await;
        moves.values().any(|m| m.is_at_work() && meant(m)).then_some(())
    })
    .await;
}

/// Waits until no move is in progress; returns the ended moves by id.
async fn settled(client: &Client, what: &str) -> BTreeMap<u64, Move> {
    wait(what, client, async || {
        let moves = moves(client).await;
        (!moves.is_empty() && !moves.values().any(Move::is_under_way)).then_some(moves)
    })
    .await
}

/// Returns the nodes of each slice of an index, and true if all of its copies are ready.
async fn copies(client: &Client, index: &str) -> (BTreeMap<u64, Vec<u64>>, bool) {
    let rows = sql::simple(client, "SHOW SLICES").await.unwrap_or_default();
    let mut copies: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut ready = true;
    for row in rows.iter().filter(|row| row[0].as_deref() == Some(index)) {
        let number = |n: usize| row[n].as_ref().expect("no NULL").parse::<u64>().expect("a number");
        copies.entry(number(1)).or_default().push(number(3));
        ready &= row[4].as_deref() == Some("ready");
    }
    (copies, ready)
}

/// Returns the number of copies on a node; `None` without an answer.
async fn copies_on(client: &Client, node: u64) -> Option<usize> {
    let rows = sql::simple(client, "SHOW SLICES").await.ok().filter(|rows| !rows.is_empty())?;
    Some(rows.iter().filter(|row| row[3] == Some(node.to_string())).count())
}

/// Asserts that a statement is refused with an SQLSTATE, a message with these words, and a hint.
async fn refused(client: &Client, statement: &str, state: &str, words: &[&str], hint: &str) {
    let error = client.simple_query(statement).await.expect_err(statement);
    let error = error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error:?}"));
    assert_eq!(error.code().code(), state, "{statement}: {error:?}");
    for word in words {
        assert!(error.message().contains(word), "{statement} must say {word:?}: {error:?}");
    }
    assert!(error.hint().unwrap_or_default().contains(hint), "{statement}: hint {error:?}");
}

/// The traffic during the moves, which runs until it is stopped.
struct Traffic {
    stop: Arc<AtomicBool>,
    /// True while a member is dead, so that reads of slices without a second copy may fail.
    broken: Arc<AtomicBool>,
    writer: JoinHandle<(BTreeMap<u64, i64>, u64)>,
    scanners: Vec<JoinHandle<u64>>,
    definer: JoinHandle<u64>,
}

impl Traffic {
    fn begin(address: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let broken = Arc::new(AtomicBool::new(false));
        let switches = || Switches { stop: Arc::clone(&stop), broken: Arc::clone(&broken) };
        // Each entry of by_owner has two copies, so that it can be read whichever member is dead.
        let scanners = [("by_amount", true), ("by_owner", false)]
            .map(|(index, may_fail)| tokio::spawn(scan(address, index, may_fail, switches())));
        let writer = tokio::spawn(write(address, switches()));
        let definer = tokio::spawn(define(address, switches()));
        Self { stop, broken, writer, scanners: scanners.into(), definer }
    }

    /// Ends the traffic; returns the writer's accounts.
    async fn end(self) -> BTreeMap<u64, i64> {
        self.stop.store(true, Ordering::Relaxed);
        let (accounts, writes) = self.writer.await.expect("the writer");
        let mut scans = Vec::new();
        for scanner in self.scanners {
            scans.push(scanner.await.expect("a scanner"));
        }
        let defined = self.definer.await.expect("the definer");
        println!("{writes} writes, {scans:?} scans, {defined} indexes made and dropped");
        assert!(writes > 100 && scans.iter().all(|scans| *scans > 20), "{writes} {scans:?}");
        assert!(defined > 3, "{defined} indexes were made and dropped meanwhile");
        accounts
    }

    /// Sets whether a member is dead, so that some reads may fail.
    fn break_for(&self, broken: bool) {
        self.broken.store(broken, Ordering::SeqCst);
    }
}

/// The switches of the traffic.
#[derive(Clone)]
struct Switches {
    stop: Arc<AtomicBool>,
    broken: Arc<AtomicBool>,
}

impl Switches {
    fn is_running(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }
}

fn upsert(rows: &[(u64, i64)]) -> String {
    let row = |(id, amount): &(u64, i64)| {
        let owner = id % 97;
        format!("('a{id}', '{{\"account\":{id},\"amount\":{amount},\"owner\":\"o{owner}\"}}')")
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    format!(
        "INSERT INTO bank (id, doc) VALUES {} ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
        rows.join(", ")
    )
}

/// Moves amounts between accounts until the end. Each statement is atomic, so that the sum never
/// changes. Returns the accounts and the number of statements.
async fn write(address: SocketAddr, switches: Switches) -> (BTreeMap<u64, i64>, u64) {
    let client = connect(address).await;
    let mut accounts: BTreeMap<u64, i64> = (0..ACCOUNTS).map(|id| (id, AMOUNT)).collect();
    let mut random = fastrand::Rng::with_seed(4);
    let mut writes = 0;
    while switches.is_running() {
        let (from, to) = (random.u64(..ACCOUNTS), random.u64(..ACCOUNTS));
        let amount = random.i64(1..50);
        if from != to {
            let pair = [(from, accounts[&from] - amount), (to, accounts[&to] + amount)];
            // Writes need neither an indexer nor a coordinator.
            sql::run(&client, &upsert(&pair)).await;
            accounts.extend(pair);
            writes += 1;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    (accounts, writes)
}

/// Scans a whole index in its order repeatedly: each account is returned once, and the sum is
/// right. Returns the number of scans.
async fn scan(address: SocketAddr, index: &str, may_fail: bool, switches: Switches) -> u64 {
    let client = connect(address).await;
    let keys = if index == "by_amount" { "amount, account" } else { "owner, amount, account" };
    let statements = [
        format!("SELECT account, amount FROM {index} ORDER BY {keys}"),
        format!("SELECT count(*), sum(amount) FROM {index}"),
    ];
    let mut scans = 0;
    for statement in statements.iter().cycle() {
        if !switches.is_running() {
            break;
        }
        let was_broken = switches.is_broken();
        match sql::simple(&client, statement).await {
            Ok(rows) => {
                check(statement, &rows);
                scans += 1;
            }
            Err(error) if may_fail && (was_broken || switches.is_broken()) => {
                assert!(error.as_db_error().is_some(), "{statement}: {error:?}");
            }
            Err(error) => panic!("{statement}: {error:?}"),
        }
    }
    scans
}

fn check(statement: &str, rows: &sql::Rows) {
    let number = |cell: &Option<String>| cell.as_ref().expect("no NULL").parse::<i64>();
    let numbers: Vec<[i64; 2]> = rows
        .iter()
        .map(|row| [number(&row[0]).expect("a number"), number(&row[1]).expect("a number")])
        .collect();
    let sum = ACCOUNTS as i64 * AMOUNT;
    if statement.contains("count(*)") {
        assert_eq!(numbers, [[ACCOUNTS as i64, sum]], "{statement}");
        return;
    }
    let mut accounts: Vec<i64> = numbers.iter().map(|row| row[0]).collect();
    accounts.sort_unstable();
    let twice: Vec<_> = accounts.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{statement}: {} rows, {twice:?} twice", rows.len());
    assert_eq!(accounts.len() as u64, ACCOUNTS, "{statement}: an account is missing");
    assert_eq!(numbers.iter().map(|row| row[1]).sum::<i64>(), sum, "{statement}");
    if statement.contains("by_amount") {
        assert!(numbers.is_sorted_by_key(|row| (row[1], row[0])), "{statement}: in order");
    }
}

/// Creates, reads and drops an index repeatedly, because moves must not make DDL fail. Returns the
/// number of rounds.
async fn define(address: SocketAddr, switches: Switches) -> u64 {
    let client = connect(address).await;
    let mut made = 0;
    while switches.is_running() {
        for statement in [
            "CREATE INDEX IF NOT EXISTS passing ON bank (owner, amount::int8)",
            "DROP INDEX passing",
        ] {
            let was_broken = switches.is_broken();
            match client.batch_execute(statement).await {
                Ok(()) => made += u64::from(statement.starts_with("DROP")),
                // A build waits for a dead member.
                Err(error) if was_broken || switches.is_broken() => {
                    let told = error.as_db_error().map(|error| error.message().to_owned());
                    assert!(told.is_some_and(|told| !told.contains("move")), "{error:?}");
                }
                Err(error) => panic!("{statement}: {error:?}"),
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    made
}

async fn load(client: &Client) {
    sql::run(
        client,
        "CREATE BUCKET bank WITH (vbuckets = 16);
         CREATE INDEX by_amount ON bank (amount::int8, account::int8) WITH (slices = 8);
         CREATE INDEX by_owner ON bank (owner, amount::int8, account::int8)
            PARTITION BY HASH (owner) WITH (slices = 4, replicas = 1)",
    )
    .await;
    let accounts: Vec<_> = (0..ACCOUNTS).map(|id| (id, AMOUNT)).collect();
    for rows in accounts.chunks(500) {
        sql::run(client, &upsert(rows)).await;
    }
    sql::run(client, "SET consistency = 'request_plus'").await;
    for index in ["by_amount", "by_owner"] {
        let count = sql::value(client, &format!("SELECT count(*) FROM {index}")).await;
        assert_eq!(count, ACCOUNTS.to_string(), "{index}");
    }
    // The scanners use `any` consistency, which needs an epoch that all slices have reported.
    sql::run(client, "SET consistency = 'any'").await;
    for index in ["by_amount", "by_owner"] {
        wait("all accounts at any epoch", client, async || {
            let count = sql::value(client, &format!("SELECT count(*) FROM {index}")).await;
            (count == ACCOUNTS.to_string()).then_some(())
        })
        .await;
    }
    sql::run(client, "SET consistency = 'request_plus'").await;
}

/// Kills a process that takes part in a move and restarts it.
async fn kill_in_the_middle(cluster: &mut Processes, traffic: &Traffic, id: u64, client: &Client) {
    traffic.break_for(true);
    cluster.kill(id);
    tokio::time::sleep(Duration::from_millis(500)).await;
    cluster.run(id);
    cluster.joined(client, id).await;
}

/// Checks the ended moves with an id above `since`: at least `least`, each done, or undone for a
/// reason.
fn ended_well(moves: &BTreeMap<u64, Move>, since: u64, least: usize) {
    let mine: Vec<_> = moves.range(since + 1..).map(|(_, m)| m).collect();
    for m in &mine {
        println!("{}", m.described());
        match &*m.stage {
            "done" | "ended" => {}
            "undone" => {
                assert!(m.note.starts_with("undone in stage"), "it says why: {}", m.described())
            }
            _ => panic!("it has not ended: {}", m.described()),
        }
    }
    let carried_out = mine.iter().filter(|m| m.stage != "undone").count();
    assert!(carried_out >= least, "{carried_out} moves carried out, not {least}");
}

fn newest(moves: &BTreeMap<u64, Move>) -> u64 {
    moves.keys().copied().max().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moves_between_killed_processes_lose_and_double_no_entry() {
    let mut cluster = Processes::start(&[201, 202, 203]).await;
    let client = cluster.sql().await;
    load(&client).await;
    let traffic = Traffic::begin(cluster.sql_address());
    refusals(&client).await;
    a_node_joins_and_the_leader_dies(&mut cluster, &traffic, &client).await;
    a_node_dies_while_it_is_drained(&mut cluster, &traffic, &client).await;
    a_target_dies(&mut cluster, &traffic, &client).await;
    one_slice_and_replicas(&cluster, &client).await;
    let accounts = traffic.end().await;
    for index in ["by_amount", "by_owner"] {
        let select = format!("SELECT account, amount FROM {index}");
        let mut rows = sql::simple(&client, &select).await.expect("rows");
        let row = |(id, amount): (&u64, &i64)| vec![Some(id.to_string()), Some(amount.to_string())];
        let mut expected: sql::Rows = accounts.iter().map(row).collect();
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected, "{index} as the writer has left it");
    }
}

/// Tests that invalid requests are refused with a hint.
async fn refusals(client: &Client) {
    let (slices, _) = copies(client, "by_amount").await;
    let here = slices[&0][0];
    let to_itself = format!("ALTER INDEX by_amount MOVE SLICE 0 TO '{here}'");
    refused(client, &to_itself, "22023", &["by_amount", "has a copy already"], "").await;
    let only = format!("REMOVE NODE '{here}'");
    refused(client, &only, "22023", &["has the only copy of slice"], "DRAIN NODE").await;
    let alive = format!("REMOVE NODE '{here}' FORCE");
    refused(client, &alive, "55000", &["is alive", "only copy of slice"], "stop its process").await;
    for unknown in
        ["DRAIN NODE '77'", "REMOVE NODE 'nowhere:1'", "ALTER INDEX by_amount MOVE SLICE 0 TO '77'"]
    {
        refused(client, unknown, "42P01", &["there is no node"], "SHOW NODES").await;
    }
    let beyond = format!("ALTER INDEX by_amount MOVE SLICE 8 TO '{here}'");
    refused(client, &beyond, "22023", &["slices 0 to 7"], "").await;
    refused(client, "REBALANCE INDEX nothing", "42P01", &["nothing"], "").await;
    refused(client, "DRAIN NODE '1'", "22023", &["coordinator"], "SHOW NODES").await;
}

async fn a_node_joins_and_the_leader_dies(
    cluster: &mut Processes,
    traffic: &Traffic,
    client: &Client,
) {
    cluster.run(204);
    cluster.joined(client, 204).await;
    let plan = wait("a plan", client, async || {
        let lines = sql::simple(client, "EXPLAIN REBALANCE").await.ok()?;
        let lines: Vec<String> = lines.into_iter().filter_map(|mut row| row[0].take()).collect();
        lines.iter().any(|line| line.contains("to node 204")).then_some(lines)
    })
    .await;
    sql::run(client, "REBALANCE").await;
    at_work(client, "a move to the new node", |m| m.to == Some(204)).await;
    let leader = cluster.leader().await;
    traffic.break_for(true);
    cluster.kill(leader);
    let ended = settled(client, "the rebalance, by another leader").await;
    cluster.run(leader);
    traffic.break_for(false);
    // The planned moves cannot be counted exactly, because an index is created and dropped all the time.
    assert!(plan[0].contains("moves"), "{plan:?}");
    ended_well(&ended, 0, 2);
    assert!(copies_on(client, 204).await > Some(0), "the new node has slices");
}

async fn a_node_dies_while_it_is_drained(
    cluster: &mut Processes,
    traffic: &Traffic,
    client: &Client,
) {
    let before = newest(&moves(client).await);
    refused(client, "REMOVE NODE '201' WAIT", "55000", &["is not being drained"], "DRAIN").await;
    sql::run(client, "DRAIN NODE '201'").await;
    let planned = moves(client).await;
    assert!(planned.values().any(|m| m.from == Some(201)), "the moves are planned: {planned:?}");
    let state = state_of(client, "201").await;
    assert!(state.starts_with("draining, ") || state == "drained", "{state}");
    at_work(client, "a move from the drained node", |m| m.from == Some(201)).await;
    kill_in_the_middle(cluster, traffic, 201, client).await;
    wait("node 201 is empty", client, async || {
        (state_of(client, "201").await == "drained").then_some(())
    })
    .await;
    assert_eq!(copies_on(client, 201).await, Some(0));
    traffic.break_for(false);
    ended_well(&settled(client, "the end of the drain").await, before, 2);
    sql::run(client, "REMOVE NODE '201' WAIT").await;
    // The removed node still runs and asks to join; it is refused.
    for _ in 0..3 {
        let nodes = sql::simple(client, "SHOW NODES").await.expect("nodes");
        let states: Vec<_> = nodes
            .iter()
            .filter(|row| row[0].as_deref() == Some("201"))
            .map(|row| row[4].as_deref())
            .collect();
        assert_eq!(states, [Some("removed")], "{nodes:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    cluster.kill(201);
}

/// Returns the state of a node in SHOW NODES; empty without an answer.
async fn state_of(client: &Client, node: &str) -> String {
    let nodes = sql::simple(client, "SHOW NODES").await.unwrap_or_default();
    let found = nodes.into_iter().find(|row| row[0].as_deref() == Some(node));
    found.and_then(|mut row| row[4].take()).unwrap_or_default()
}

async fn a_target_dies(cluster: &mut Processes, traffic: &Traffic, client: &Client) {
    let before = newest(&moves(client).await);
    cluster.run(205);
    cluster.joined(client, 205).await;
    wait("REBALANCE finds something to move", client, async || {
        sql::run(client, "REBALANCE").await;
        moves(client).await.values().any(|m| m.to == Some(205)).then_some(())
    })
    .await;
    at_work(client, "a move to the target", |m| m.to == Some(205)).await;
    kill_in_the_middle(cluster, traffic, 205, client).await;
    ended_well(&settled(client, "the rebalance, to a target that died").await, before, 2);
    traffic.break_for(false);
    assert!(copies_on(client, 205).await > Some(0), "the new node has slices");
}

/// Tests that ALTER INDEX moves a slice to the address of a node, adds a second copy of each slice,
/// and removes it again.
async fn one_slice_and_replicas(cluster: &Processes, client: &Client) {
    let (slices, _) = copies(client, "by_amount").await;
    let to = [202, 203, 204, 205].into_iter().find(|node| !slices[&3].contains(node));
    let to = to.expect("a node without slice 3");
    let address = cluster.address(to);
    // The node may have dropped its copy just now, and scans may still read that copy.
    wait("the move is taken", client, async || {
        let asked = format!("ALTER INDEX by_amount MOVE SLICE 3 TO '{address}'");
        match sql::simple(client, &asked).await {
            Ok(_) => Some(()),
            Err(error) if sql::state_of(&error) == "57P03" => None,
            Err(error) => panic!("{error:?}"),
        }
    })
    .await;
    wait("slice 3 is where it should be", client, async || {
        let (slices, ready) = copies(client, "by_amount").await;
        (slices.get(&3) == Some(&vec![to]) && ready).then_some(())
    })
    .await;
    for (replicas, number) in [(1, 2), (0, 1)] {
        sql::run(client, &format!("ALTER INDEX by_amount SET (replicas = {replicas})")).await;
        wait(&format!("{number} copies of each slice"), client, async || {
            let (slices, ready) = copies(client, "by_amount").await;
            let all = slices.len() == 8 && slices.values().all(|nodes| nodes.len() == number);
            (all && ready).then_some(())
        })
        .await;
    }
}
