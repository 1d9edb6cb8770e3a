//! Tests that the judge of statements finds each kind of wrong log.

use bytes::Bytes;
use proto::model::cut::WritePosition;
use proto::model::ids::BucketId;
use serde_json::json;

use super::*;

/// A correct source, which numbers writes as the product does, without its code.
struct Source {
    log: Vec<Vec<Arc<Mutation>>>,
    statements: Statements,
}

impl Source {
    fn new() -> Self {
        Self { log: vec![Vec::new(); usize::from(VBUCKETS)], statements: Statements::default() }
    }

    fn document(&self, row: usize) -> Bytes {
        json!({ MARK: format!("{}.{row}", self.statements.next()) }).to_string().into()
    }

    fn upserts(&self, ids: &[&str]) -> Vec<Write> {
        let write = |(row, id): (usize, &&str)| Write {
            id: (*id).to_owned(),
            kind: WriteKind::Upsert(self.document(row)),
        };
        ids.iter().enumerate().map(write).collect()
    }

    fn exists(&self, id: &str) -> bool {
        let log = &self.log[usize::from(vbucket_of(id, VBUCKETS).0)];
        let last = log.iter().rev().find(|mutation| &*mutation.id == id);
        last.is_some_and(|mutation| mutation.kind == MutationKind::Upsert)
    }

    fn execute(&mut self, writes: &[Write]) -> WriteReply {
        let (mut positions, mut affected) = (BTreeMap::new(), 0);
        for write in writes {
            let vbucket = vbucket_of(&write.id, VBUCKETS);
            let (kind, document) = match &write.kind {
                WriteKind::Insert(document) | WriteKind::Upsert(document) => {
                    (MutationKind::Upsert, document.clone())
                }
                WriteKind::Delete if !self.exists(&write.id) => continue,
                WriteKind::Delete => (MutationKind::Deletion, Bytes::new()),
            };
            let log = &mut self.log[usize::from(vbucket.0)];
            let seqno = Seqno(log.len() as u64 + 1);
            log.push(Arc::new(Mutation::new((vbucket, seqno), (*write.id).into(), kind, document)));
            positions.insert(vbucket, Position { vbuuid: Vbuuid(7), seqno });
            affected += 1;
        }
        let positions = positions.into_iter().collect();
        let position = WritePosition { bucket: BucketId(1), positions };
        WriteReply { affected, position }
    }

    /// Executes and acknowledges a statement.
    fn acknowledge(&mut self, writes: &[Write]) -> WriteReply {
        let statement = self.statements.begin(writes);
        let reply = self.execute(writes);
        self.statements.end(statement, Outcome::Acknowledged(reply.clone()));
        reply
    }

    fn judge(&self) -> Option<String> {
        let branches = vec![vec![(Vbuuid(7), 0)]; usize::from(VBUCKETS)];
        self.statements.judge(&[(branches, self.log.clone())], false)
    }

    fn log_of(&mut self, id: &str) -> &mut Vec<Arc<Mutation>> {
        &mut self.log[usize::from(vbucket_of(id, VBUCKETS).0)]
    }
}

fn delete(id: &str) -> Write {
    Write { id: id.to_owned(), kind: WriteKind::Delete }
}

/// Returns a source whose history has statements of every kind.
fn source() -> Source {
    let mut source = Source::new();
    let writes = source.upserts(&["a", "b", "c", "a", "d"]);
    source.acknowledge(&writes);
    let writes = vec![delete("a"), delete("nobody"), delete("b")];
    assert_eq!(source.acknowledge(&writes).affected, 2);
    let in_doubt = source.upserts(&["a", "e", "f"]);
    source.statements.begin(&in_doubt);
    source.execute(&in_doubt);
    let lost = source.upserts(&["g"]);
    source.statements.begin(&lost);
    let refused = source.upserts(&["c"]);
    let refused = source.statements.begin(&refused);
    source.statements.end(refused, Outcome::Refused);
    source
}

#[test]
fn a_correct_log_is_accepted() {
    assert_eq!(source().judge(), None);
}

/// A deletion may be the effect of either of two statements. The other effects show whose it is.
#[test]
fn a_statement_that_began_earlier_may_have_found_a_document_deleted_by_a_later_one() {
    let mut source = source();
    let of = |vbucket: u16| {
        let ids = (0..).map(|n| format!("t{n}"));
        ids.filter(move |id| vbucket_of(id, VBUCKETS).0 == vbucket)
    };
    let (mut first, mut second) = (of(0), of(1));
    let [a, b, c, d] = [&mut first as &mut dyn Iterator<Item = String>, &mut second]
        .map(|ids| [ids.next().unwrap(), ids.next().unwrap()])
        .concat()
        .try_into()
        .unwrap();
    let created = source.upserts(&[&a, &c]);
    source.acknowledge(&created);
    let upserts = source.upserts(&[&b, &d]);
    let earlier = [delete(&a), upserts[0].clone(), delete(&c), upserts[1].clone()];
    let statement = source.statements.begin(&earlier);
    source.acknowledge(&[delete(&a)]);
    let reply = source.execute(&earlier);
    assert_eq!(reply.affected, 3);
    source.statements.end(statement, Outcome::Acknowledged(reply));
    assert_eq!(source.judge(), None);
}

#[test]
fn an_acknowledged_row_that_is_absent_is_found() {
    let mut source = source();
    let writes = source.upserts(&["x", "y", "z"]);
    source.acknowledge(&writes);
    for id in ["x", "y", "z"] {
        let mut log = source.log_of(id).clone();
        let lost = log.pop().expect("it was written");
        std::mem::swap(source.log_of(id), &mut log);
        assert!(source.judge().is_some(), "{lost:?}");
        *source.log_of(id) = log;
    }
    assert_eq!(source.judge(), None);
}

#[test]
fn another_document_under_an_acknowledged_place_is_found() {
    let mut source = source();
    let writes = source.upserts(&["x"]);
    source.acknowledge(&writes);
    let other = json!({ MARK: "0.0" }).to_string();
    let log = source.log_of("x");
    let place = log.last().map(|last| (last.vbucket, last.seqno)).expect("it was written");
    let other = Mutation::new(place, "x".into(), MutationKind::Upsert, other.into());
    *log.last_mut().expect("it was written") = Arc::new(other);
    assert!(source.judge().is_some());
}

#[test]
fn a_wrong_number_of_affected_rows_is_found() {
    for wrong in [1, 3] {
        let mut source = source();
        let writes = source.upserts(&["x", "y"]);
        let statement = source.statements.begin(&writes);
        let reply = WriteReply { affected: wrong, ..source.execute(&writes) };
        source.statements.end(statement, Outcome::Acknowledged(reply));
        assert!(source.judge().is_some(), "{wrong}");
    }
}

#[test]
fn a_write_that_is_there_twice_is_found() {
    let mut source = source();
    let writes = source.upserts(&["x"]);
    source.acknowledge(&writes);
    source.execute(&writes);
    assert!(source.judge().is_some());
}

#[test]
fn a_deletion_that_nobody_asked_for_is_found() {
    let mut source = source();
    source.execute(&[delete("d")]);
    assert!(source.judge().is_some());
}

#[test]
fn a_refused_statement_that_is_there_is_found() {
    let mut source = source();
    let refused = source.upserts(&["x"]);
    let statement = source.statements.begin(&refused);
    source.statements.end(statement, Outcome::Refused);
    source.execute(&refused);
    assert!(source.judge().is_some());
}

/// A commit that was rolled back may be in the log of the previous leader, but must not be visible.
#[test]
fn a_commit_that_was_rolled_back_is_found_where_it_is_shown_only() {
    let mut source = source();
    let shown = source.log.clone();
    let rolled_back = [source.upserts(&["x"]), vec![delete("d")]].concat();
    let statement = source.statements.begin(&rolled_back);
    source.statements.end(statement, Outcome::RolledBack);
    source.execute(&rolled_back);
    let lost = std::mem::replace(&mut source.log, shown);
    let judge = |logs: [&Vec<_>; 2]| {
        let branches = vec![vec![(Vbuuid(7), 0)]; usize::from(VBUCKETS)];
        source.statements.judge(&logs.map(|log| (branches.clone(), log.clone())), false)
    };
    assert_eq!(judge([&source.log, &lost]), None);
    assert!(judge([&lost, &source.log]).is_some());
}

#[test]
fn a_part_of_a_statement_in_doubt_is_found() {
    let mut source = source();
    let in_doubt = source.upserts(&["x", "y"]);
    source.statements.begin(&in_doubt);
    source.execute(&in_doubt[..1]);
    assert!(source.judge().is_some());
}
