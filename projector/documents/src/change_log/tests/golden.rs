//! Tests that the format of groups and of side files does not change by accident. Records of
//! buckets and commits of transactions are left out: their encoding is that of their types.

use std::path::PathBuf;

use proto::env::real::RealFs;
use proto::env::{FileSystem, OpenMode, sim};

use super::naive_model::{Op, add};
use crate::change_log::*;

/// A segment with an item of each kind that is tested; a side file belongs to it.
const SEGMENT: &[u8] = include_bytes!("../../../testdata/change_log.log");
const INDEX: &[u8] = include_bytes!("../../../testdata/change_log.index");

fn groups() -> [Vec<Op>; 3] {
    let mutation = |vbucket, seqno, document: Option<&str>| Op::Mutation {
        vbucket,
        vbuuid: 77,
        seqno,
        id: format!("id-{seqno}"),
        document: document.map(|document| document.as_bytes().to_vec()),
    };
    let document = ("copied".into(), 8, b"{}".to_vec());
    [
        vec![
            mutation(0, 1, Some("{\"a\":1}")),
            mutation(2, 1, Some("[]")),
            mutation(0, 2, None),
            mutation(2, 2, Some("true")),
        ],
        vec![
            Op::Rewind(0, 1),
            Op::Remove(1),
            Op::Begin(3, 9),
            Op::Documents(3, vec![document]),
            Op::Purge(vec![(2, 1), (3, 9)]),
        ],
        vec![mutation(2, 3, None)],
    ]
}

fn files() -> [Vec<u8>; 2] {
    let (env, _, fs) = sim::world(1);
    let (dir, state) = (PathBuf::from("/log"), LogState::new(4));
    let options = ChangeLogOptions { segment_bytes: 300, ..ChangeLogOptions::default() };
    let log = ChangeLog::open(&env, &dir, &options, &state, &mut |_, _| Ok(())).unwrap();
    for ops in groups() {
        let mut group = GroupBuilder::default();
        ops.iter().for_each(|op| add(&mut group, op));
        log.append(&group).unwrap();
        log.sync().unwrap();
    }
    ["log", "index"].map(|extension| {
        let path = dir.join(format!("{:020}.{extension}", 0));
        let file = fs.open(&path, OpenMode::Read).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    })
}

#[test]
fn the_format_is_that_of_the_golden_files() {
    let [segment, index] = files();
    // Only for a new version of the format.
    if std::env::var_os("UPDATE").is_some() {
        let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata");
        for (name, bytes) in [("change_log.log", &segment), ("change_log.index", &index)] {
            let file = RealFs.open(&dir.join(name), OpenMode::Create).unwrap();
            file.set_len(0).and_then(|()| file.write_all_at(bytes, 0)).unwrap();
        }
        return;
    }
    assert_eq!(segment, SEGMENT);
    assert_eq!(index, INDEX);
}
