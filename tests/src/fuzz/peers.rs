//! Targets for bytes from other processes: calls and answers, Raft's messages, commands, and packed
//! rows.

use coordinator::testing::{EntryKind, LogEntry, LogSnapshot, Members, MessageKind, RaftMessage};
use proto::model::cut::Position;
use proto::model::ids::{BucketId, Epoch, NodeId, Seqno, SliceNo, TopologyNo, VbucketId, Vbuuid};
use proto::rpc::rows::{RowBlock, RowBlockBuilder, row_at};
use proto::rpc::scan::{FirstBatch, ShardBatch, ShardScan};
use proto::value::Value;
use proto::value::key::{encode_entry, encode_part};
use serde::Serialize;

use super::target::Target;
use super::world;

/// The targets that read input of other processes.
pub const TARGETS: &[Target] = &[
    Target::new("peer_message", sextant::wire::fuzz::message, peer_messages).with_bytes_each(512),
    Target::new("raft_message", coordinator::testing::fuzz::message, raft_messages)
        .with_bytes_each(512),
    Target::new("commands", commands, command_logs).with_bytes_each(1 << 13).with_share(0.3),
    Target::new("row_block", row_block, row_blocks),
    Target::new("printed_row", sextant::pg::fuzz::printed_row, printed_rows)
        .with_bytes_each(1 << 12),
];

/// Returns a message of a call: the kind, the number of the method, and the body.
fn message(kind: u8, method: u32, body: &impl Serialize) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(postcard::to_stdvec(&(method, body)).expect("it can be encoded"));
    bytes
}

const REQUEST: u8 = 0;
const ANSWER: u8 = 1;
const ITEM: u8 = 0x81;

fn peer_messages() -> Vec<Vec<u8>> {
    let scan = ShardScan {
        bucket: BucketId(1),
        index: world::INDEX.local_id(),
        slices: vec![SliceNo(0), SliceNo(3)],
        epoch: Epoch(9),
        own: None,
        ranges: [Default::default()].into(),
        filter: world::INDEX.spec.predicate.clone().map(Into::into),
        reverse: false,
        distinct_parts: None,
        resume_after: None,
        limit: Some(3),
        output: world::SCAN.output.clone(),
        timeout_ms: 100,
    };
    let first = FirstBatch { batch: ShardBatch::Rows(rows()), is_whole: true };
    let ok = |first: FirstBatch| Ok::<_, proto::Error>(first);
    let error = Err::<FirstBatch, _>(proto::Error::internal("it fails").with_hint("do this"));
    let position = Position { vbuuid: Vbuuid(4), seqno: Seqno(5) };
    let mut messages = vec![
        message(REQUEST, 17, &(scan.clone(),)),
        message(0x80, 3, &(scan,)),
        message(ANSWER, 17, &ok(first)),
        message(ANSWER, 17, &error),
        message(ITEM, 3, &Ok::<_, proto::Error>(ShardBatch::Done)),
        message(REQUEST, 14, &(world::INDEX.local_id(), TopologyNo(1))),
        message(REQUEST, 7, &(BucketId(1), vec!["a".to_owned(), "b".to_owned()])),
        message(ANSWER, 9, &Ok::<_, proto::Error>(vec![(VbucketId(1), position)])),
        message(REQUEST, 5, &(raft_messages(),)),
        message(ANSWER, 14, &Ok::<_, proto::Error>(&world::INDEX.topology)),
    ];
    for record in world::records() {
        // A record is its version, the time, and the request.
        let request = record.get(3..).unwrap_or_default();
        let mut proposed = vec![REQUEST, 0];
        proposed.extend_from_slice(request);
        messages.push(proposed);
    }
    messages
}

fn raft_messages() -> Vec<Vec<u8>> {
    let entry = |index: u64| LogEntry {
        index,
        term: 3,
        data: world::records().into_iter().nth(index as usize).unwrap_or_default().into(),
        context: b"id".to_vec().into(),
        kind: EntryKind::Command,
    };
    let members = Members::new(vec![1, 2, 3]);
    let state = world::states().pop().unwrap_or_default();
    let snapshot = LogSnapshot::new(7, 2, &members, &state);
    let append = RaftMessage {
        group: 77,
        kind: MessageKind::Append,
        from: NodeId(1),
        to: NodeId(2),
        term: 3,
        log_term: 2,
        index: 9,
        entries: vec![entry(1), entry(8)],
        commit: 8,
        commit_term: 2,
        snapshot: None,
        request_snapshot: 4,
        reject: true,
        reject_hint: 5,
        context: b"context".to_vec().into(),
    };
    let install = RaftMessage {
        kind: MessageKind::Snapshot,
        entries: Vec::new(),
        snapshot: snapshot.ok(),
        ..append.clone()
    };
    let vote =
        RaftMessage { kind: MessageKind::RequestPreVote, entries: Vec::new(), ..append.clone() };
    [append, install, vote].iter().filter_map(|message| message.encode().ok()).collect()
}

fn commands(data: &[u8]) {
    let Some((first, records)) = data.split_first() else { return };
    let base: &[u8] = if first & 1 == 0 { &[] } else { &world::STATE };
    coordinator::testing::fuzz::records(base, records);
}

/// Returns all records from an empty state on, and each record alone after the first ones.
fn command_logs() -> Vec<Vec<u8>> {
    let mut logs = vec![vec![0]];
    for record in world::records() {
        let framed = [&(record.len() as u16).to_be_bytes()[..], &record].concat();
        logs[0].extend_from_slice(&framed);
        logs.push([&[1], &framed[..]].concat());
    }
    logs
}

fn rows() -> RowBlock {
    let mut builder = RowBlockBuilder::default();
    for n in 0..5 {
        let (entry, include) = row(n);
        builder.push(&entry, &include);
    }
    builder.push(&[7; 300], b"x");
    builder.finish()
}

fn row(n: i64) -> (Vec<u8>, Vec<u8>) {
    let (mut entry, mut include) = (Vec::new(), Vec::new());
    let key = [Value::from("a text"), Value::int(n * 1_000_003)];
    encode_entry(&key, &[false, n % 2 == 1], "id-1", &mut entry).expect("a short key");
    for value in [Value::float(n as f64 / 7.0), Value::Bool(true), Value::Array(vec![Value::Null])]
    {
        encode_part(&value, false, &mut include);
    }
    (entry, include)
}

/// Returns blocks of rows: the number of rows in two bytes, then the rows.
fn row_blocks() -> Vec<Vec<u8>> {
    let block = rows();
    vec![[&(block.rows as u16).to_be_bytes()[..], &block.data].concat()]
}

/// Checks that each reader of a valid block finds the declared number of rows.
fn row_block(data: &[u8]) {
    let Some((count, rows)) = data.split_first_chunk::<2>() else { return };
    let rows_bytes = bytes::Bytes::copy_from_slice(rows);
    let block = RowBlock { rows: u16::from_be_bytes(*count).into(), data: rows_bytes };
    let read = block.iter().count() as u32;
    let (mut at, mut walked) = (0, 0);
    while let Some(place) = row_at(&block.data, at) {
        (at, walked) = (place.next, walked + 1);
    }
    assert_eq!(walked, read, "both readers find the same rows");
    if block.validate().is_ok() {
        assert_eq!(read, block.rows, "a valid block has its rows");
    }
}

fn printed_rows() -> Vec<Vec<u8>> {
    let of = |n: i64| {
        let (entry, include) = row(n);
        [&[entry.len() as u8, (n as u8 & 1) << 1][..], &entry, &include].concat()
    };
    (0..4).map(of).collect()
}
