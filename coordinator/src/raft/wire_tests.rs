use super::*;

fn message() -> RaftMessage {
    RaftMessage {
        group: 77,
        kind: MessageKind::Append,
        from: NodeId(1),
        to: NodeId(2),
        term: 3,
        log_term: 2,
        index: 9,
        entries: vec![LogEntry {
            index: 10,
            term: 3,
            data: Bytes::from_static(b"command"),
            context: Bytes::from_static(b"id"),
            kind: EntryKind::Command,
        }],
        commit: 8,
        commit_term: 2,
        snapshot: Some(LogSnapshot {
            index: 7,
            term: 2,
            voters: vec![1, 2, 3],
            learners: vec![4],
            data: Bytes::from_static(b"state"),
        }),
        request_snapshot: 4,
        reject: true,
        reject_hint: 5,
        context: Bytes::from_static(b"context"),
    }
}

#[test]
fn every_kind_and_field_survives_the_wire_and_the_crate() {
    for (kind, _) in KINDS {
        let sent = RaftMessage { kind, ..message() };
        let bytes = sent.encode().unwrap();
        assert_eq!(sender_of_message(&bytes).unwrap(), sent.from);
        let read = RaftMessage::decode(&bytes).unwrap();
        assert_eq!(read, sent);
        assert_eq!(RaftMessage::from_raft(read.into_raft(), 77).unwrap(), sent);
    }
}

#[test]
fn a_change_of_the_members_survives_the_wire_and_the_crate() {
    let change = MemberChange::Add { node: NodeId(4), address: "h:1".into() };
    let context = ChangeContext { proposer: Bytes::from_static(b"me"), change };
    let entry = LogEntry {
        index: 10,
        term: 3,
        data: Bytes::new(),
        context: context.encode().unwrap(),
        kind: EntryKind::Members,
    };
    let sent = RaftMessage { entries: vec![entry], ..message() };
    let read = RaftMessage::decode(&sent.encode().unwrap()).unwrap();
    let passed = RaftMessage::from_raft(read.into_raft(), 77).unwrap();
    assert_eq!(passed, sent);
    assert_eq!(ChangeContext::decode(&passed.entries[0].context).unwrap(), context);
}

#[test]
fn a_snapshot_has_all_of_its_members_and_the_state() {
    let members = Members {
        founders: vec![1, 2, 3],
        voters: vec![1, 4],
        learners: vec![5],
        removed: vec![2, 3],
    };
    let snapshot = LogSnapshot::new(7, 2, &members, b"state").unwrap();
    let passed = LogSnapshot::from_raft(snapshot.clone().into_raft());
    assert_eq!(passed, snapshot);
    assert_eq!((passed.members().unwrap(), passed.state().unwrap()), (members, &b"state"[..]));
    for len in 0..snapshot.data.len() - b"state".len() {
        let cut = LogSnapshot { data: snapshot.data.slice(..len), ..snapshot.clone() };
        assert_eq!(cut.members().unwrap_err().code, ErrorCode::Corrupt, "cut at {len}");
    }
}

#[test]
fn invalid_bytes_are_refused() {
    let good = message().encode().unwrap();
    for len in 0..good.len() {
        assert!(RaftMessage::decode(&good[..len]).is_err(), "cut at {len}");
    }
    let mut long = good.clone();
    long.push(0);
    assert!(RaftMessage::decode(&long).is_err());
    let mut other_version = good;
    other_version[0] = 9;
    assert_eq!(RaftMessage::decode(&other_version).unwrap_err().code, ErrorCode::Version);
}
