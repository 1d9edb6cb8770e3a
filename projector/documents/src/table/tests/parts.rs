//! Tests of single promises of the table: files, the dead list, tombstones, runs, limits.

use std::sync::atomic::Ordering;

use proto::ErrorCode;
use proto::model::ids::{VbucketId, vbucket_of};

use super::*;

/// A retention that needs every version.
fn all() -> Retention {
    Retention::default()
}

/// Returns a retention that needs only the newest version of each document.
fn newest() -> Retention {
    Retention { from: vec![Seqno(u64::MAX); usize::from(VBUCKETS)] }
}

fn new_table() -> (SimFs, DocumentTable) {
    let fs = SimFs::new(1);
    let table = open(&fs, &TableManifest::new(7)).unwrap();
    (fs, table)
}

fn rewind(id: &str, before: u64, after: u64) -> DeadVersions {
    DeadVersions { vbucket: vbucket_of(id, VBUCKETS), before, after: Seqno(after) }
}

#[test]
fn files_that_the_manifest_does_not_name_are_removed_and_missing_ones_are_an_error() {
    let (fs, table) = new_table();
    put(&table, 1, "a", 1, Some("one"));
    let first = flush(&table, &all());
    put(&table, 2, "b", 1, Some("two"));
    let second = flush(&table, &all());
    drop(table);
    assert_eq!(files(&fs).len(), 2);
    let table = open(&fs, &first).unwrap();
    assert_eq!(files(&fs).len(), 1);
    assert_eq!((text(&table, "a"), text(&table, "b")), (Some("one".into()), None));
    let error = open(&fs, &second).unwrap_err();
    let name = format!("{:020}.frag", second.fragments()[1].file);
    assert!(error.message.contains(&name), "{error:?}");
    put(&table, 2, "b", 1, Some("two"));
    let third = flush(&table, &all());
    assert!(third.fragments()[1].file > second.fragments()[1].file, "ids are never used twice");
}

#[test]
fn a_file_in_the_place_of_another_one_is_an_error() {
    let (fs, table) = new_table();
    put(&table, 1, "a", 1, Some("one"));
    flush(&table, &all());
    put(&table, 2, "a", 2, Some("two"));
    let manifest = flush(&table, &all());
    let paths = files(&fs);
    fs.rename(&paths[0], &paths[1]).unwrap();
    let one = TableManifest { fragments: vec![manifest.fragments[1].clone()], ..manifest };
    let error = open(&fs, &one).unwrap_err();
    assert_eq!(error.code, ErrorCode::Corrupt);
    assert!(error.message.contains(&paths[1].display().to_string()), "{error:?}");
    let fs: Arc<dyn FileSystem> = Arc::new(fs);
    assert_eq!(verify(&fs, &dir(), &one).len(), 1);
}

#[test]
fn places_must_ascend_and_a_refused_batch_changes_nothing() {
    let (_fs, table) = new_table();
    let version = |place, id| VersionRef { place, id, seqno: Seqno(1), document: Some(b"x") };
    table.apply(&[version(5, "a")]).unwrap();
    assert!(table.apply(&[version(6, "b"), version(6, "c")]).is_err());
    assert!(table.apply(&[version(5, "b")]).is_err());
    assert!(table.apply(&[version(u64::MAX, "b")]).is_err());
    table.add_dead_versions(&[rewind("a", 9, 7)]);
    assert!(table.apply(&[version(8, "b")]).is_err());
    assert_eq!((text(&table, "b"), text(&table, "c")), (None, None));
    table.apply(&[version(9, "b")]).unwrap();
    assert_eq!(text(&table, "b").as_deref(), Some("x"));
}

#[test]
fn a_manifest_whose_parts_contradict_each_other_is_refused() {
    let (fs, table) = new_table();
    put(&table, 1, "a", 1, Some("one"));
    flush(&table, &all());
    put(&table, 2, "a", 2, Some("two"));
    let good = flush(&table, &all());
    good.check().unwrap();
    let changes: [fn(&mut TableManifest); 6] = [
        |manifest| manifest.fragments.reverse(),
        |manifest| manifest.covered = 2,
        |manifest| manifest.next_file -= 1,
        |manifest| manifest.fragments[1].file -= 1,
        |manifest| manifest.fragments[0].cleaned = 1,
        |manifest| manifest.fragments[0].versions = 0,
    ];
    for change in changes {
        let mut bad = good.clone();
        change(&mut bad);
        assert_eq!(open(&fs, &bad).unwrap_err().code, ErrorCode::Corrupt, "{bad:?}");
    }
    assert_eq!(files(&fs).len(), 2, "nothing is removed");
}

#[test]
fn an_entry_leaves_the_dead_list_with_the_last_version_that_it_names() {
    let (_fs, table) = new_table();
    put(&table, 1, "a", 1, Some("one"));
    flush(&table, &all());
    put(&table, 2, "a", 2, Some("two"));
    flush(&table, &all());
    put(&table, 3, "a", 3, Some("three"));
    table.add_dead_versions(&[rewind("a", 4, 1)]);
    assert_eq!(text(&table, "a").as_deref(), Some("one"));
    assert_eq!(flush(&table, &all()).dead_entries(), 1);
    let first = table.prepare_merge_of(|_| Some(0..1), all).unwrap().expect("a merge");
    assert_eq!(installed(first).dead_entries(), 1, "the second fragment has a dead version");
    let second = table.prepare_merge_of(|_| Some(1..2), all).unwrap().expect("a merge");
    let manifest = installed(second);
    assert_eq!((manifest.dead_entries(), manifest.fragments().len()), (0, 1));
    assert_eq!(text(&table, "a").as_deref(), Some("one"));
}

#[test]
fn merge_keeps_versions_that_die_meanwhile() {
    let (_fs, table) = new_table();
    put(&table, 1, "a", 1, Some("one"));
    put(&table, 2, "a", 2, Some("two"));
    flush(&table, &all());
    let merge = table.prepare_merge_of(|_| Some(0..1), all).unwrap().expect("a merge");
    table.add_dead_versions(&[rewind("a", 3, 1)]);
    table.record_reached(5);
    let manifest = installed(merge);
    assert_eq!((manifest.dead_entries(), manifest.fragments()[0].versions), (1, 2));
    assert_eq!(text(&table, "a").as_deref(), Some("one"));
    flush(&table, &all());
    let manifest = super::merge(&table, &all());
    assert_eq!((manifest.dead_entries(), manifest.fragments()[0].versions), (0, 1));
}

#[test]
fn a_long_dead_list_is_cleared_by_a_flush_and_rewrites() {
    let (_fs, table) = new_table();
    let (mut place, mut seqno) = (1, 0);
    for n in 0..200 {
        for _ in 0..3 {
            (place, seqno) = (place + 1, seqno + 1);
            put(&table, place, "a", seqno, Some(&seqno.to_string()));
        }
        if [0, 50, 100].contains(&n) {
            flush(&table, &all());
        }
        (place, seqno) = (place + 1, seqno - 1);
        table.add_dead_versions(&[rewind("a", place, seqno)]);
    }
    assert!(table.describe().dead_entries > 150);
    assert!(table.needs_flush() && table.needs_merge());
    flush(&table, &all());
    let mut rewrites = 0;
    while table.needs_merge() {
        rewrites += 1;
        installed(table.prepare_merge(all).unwrap().expect("a rewrite"));
    }
    assert!(table.describe().dead_entries <= 64, "{:?}", table.describe());
    assert!((1..6).contains(&rewrites), "{rewrites} rewrites");
    assert!(!table.needs_flush());
    for cut in 1..=seqno {
        let found = table.get_at("a", &vec![Seqno(cut); usize::from(VBUCKETS)]).unwrap();
        assert_eq!(found.map(|found| found.seqno), Some(Seqno(cut)));
    }
}

#[test]
fn a_tombstone_is_dropped_only_where_nothing_older_can_be_hidden() {
    let (_fs, table) = new_table();
    put(&table, 1, "a", 1, Some("one"));
    flush(&table, &newest());
    put(&table, 2, "a", 2, None);
    flush(&table, &newest());
    put(&table, 3, "b", 3, Some("three"));
    flush(&table, &newest());
    let upper = table.prepare_merge_of(|_| Some(1..3), newest).unwrap().expect("a merge");
    assert_eq!(installed(upper).fragments()[1].versions, 2, "the tombstone stays");
    assert_eq!(text(&table, "a"), None);
    assert_eq!(merge(&table, &newest()).fragments()[0].versions, 1);
    assert_eq!((text(&table, "a"), text(&table, "b").as_deref()), (None, Some("three")));
}

#[test]
fn only_versions_that_the_retention_needs_stay() {
    let (_fs, table) = new_table();
    for n in 1..=9 {
        put(&table, n, "a", n, Some(&n.to_string()));
    }
    let kept = |from| {
        let retention = Retention { from: vec![Seqno(from); usize::from(VBUCKETS)] };
        merge_of_one(&table, &retention).fragments()[0].versions
    };
    flush(&table, &Retention::default());
    assert_eq!([kept(0), kept(4), kept(9)], [9, 6, 1]);
}

fn merge_of_one(table: &DocumentTable, retention: &Retention) -> TableManifest {
    let merge = table.prepare_merge_of(|_| Some(0..1), || retention.clone()).unwrap();
    installed(merge.expect("a merge"))
}

#[test]
fn walk_continues_after_its_files_are_deleted() {
    let (fs, table) = new_table();
    for n in 0..200u64 {
        put(&table, n + 1, &format!("d{n:03}"), n + 1, Some("first"));
        if n % 50 == 49 {
            flush(&table, &newest());
        }
    }
    let mut walk = table.walk(Some("d099"), None).unwrap();
    assert_eq!(walk.documents_about(), 200);
    for n in 0..200u64 {
        put(&table, n + 300, &format!("d{n:03}"), n + 300, Some("second"));
    }
    flush(&table, &newest());
    merge(&table, &newest());
    assert_eq!(files(&fs).len(), 1);
    let rows = rest_of(&mut walk);
    assert_eq!((rows.len(), rows[0].0.as_str()), (100, "d100"));
    assert!(rows.iter().all(|row| row.2 == b"first"));
    drop(walk);
    let rows = rest_of(&mut table.walk(None, None).unwrap());
    assert!(rows.len() == 200 && rows.iter().all(|row| row.2 == b"second"));
}

#[test]
fn a_flush_covers_places_without_versions() {
    let (_fs, table) = new_table();
    assert!(table.prepare_flush(all).unwrap().is_none());
    table.record_reached(7);
    let manifest = flush(&table, &all());
    assert_eq!((manifest.covered(), manifest.fragments().len()), (7, 0));
    put(&table, 7, "a", 1, None);
    let manifest = flush(&table, &newest());
    assert_eq!((manifest.covered(), manifest.fragments().len()), (8, 0), "nothing to hide");
    assert!(table.prepare_flush(all).unwrap().is_none());
}

#[test]
fn one_flush_and_one_merge_at_a_time() {
    let (fs, table) = new_table();
    put(&table, 1, "a", 1, Some("one"));
    flush(&table, &all());
    put(&table, 2, "a", 2, Some("two"));
    flush(&table, &all());
    put(&table, 3, "a", 3, Some("three"));
    let flush = table.prepare_flush(all).unwrap().expect("a flush");
    assert!(flush.bytes() > 0);
    let merge = table.prepare_full_merge(all).unwrap().expect("a merge");
    put(&table, 4, "a", 4, Some("four"));
    assert!(table.prepare_flush(all).unwrap().is_none());
    assert!(table.prepare_full_merge(all).unwrap().is_none());
    drop((flush, merge));
    assert_eq!(files(&fs).len(), 2, "dropped changes leave no file");
    assert!(table.prepare_flush(all).unwrap().is_some());
    assert!(table.prepare_full_merge(all).unwrap().is_some());
    assert_eq!(text(&table, "a").as_deref(), Some("four"));
}

#[test]
fn runs_of_many_walks_are_merged_in_memory() {
    let (_fs, table) = new_table();
    for n in 0..400u64 {
        put(&table, n + 1, &format!("d{:02}", n % 40), n + 1, Some(&n.to_string()));
        let rows = rest_of(&mut table.walk(None, None).unwrap());
        assert_eq!(rows.len() as u64, (n + 1).min(40));
    }
    let info = table.describe();
    assert!(info.runs < 12, "{info:?}");
    assert_eq!((info.run_versions, info.memtable_versions), (400, 0));
    let manifest = flush(&table, &newest());
    assert_eq!(manifest.fragments()[0].versions, 40);
    assert_eq!(table.describe().memory_bytes, 0);
}

#[test]
fn odd_ids_and_documents_are_kept_as_they_are() {
    let (fs, table) = new_table();
    let large = "x".repeat(3 << 20);
    let ids = ["", "a", "a\0", "ä", &large[..70_000]];
    for (n, id) in ids.iter().enumerate() {
        let document = if n % 2 == 0 { "" } else { large.as_str() };
        put(&table, n as u64 + 1, id, n as u64 + 1, Some(document));
    }
    let check = |table: &DocumentTable| {
        for (n, id) in ids.iter().enumerate() {
            let expected = if n % 2 == 0 { 0 } else { large.len() };
            assert_eq!(text(table, id).map(|text| text.len()), Some(expected), "{n}");
        }
        let mut rows = rest_of(&mut table.walk(None, None).unwrap());
        rows.sort();
        assert_eq!(rows.len(), ids.len());
        assert_eq!(rest_of(&mut table.walk(Some(""), None).unwrap()).len(), ids.len() - 1);
    };
    check(&table);
    assert!(table.needs_flush());
    let manifest = flush(&table, &all());
    check(&table);
    drop(table);
    let table = open(&fs, &manifest).unwrap();
    check(&table);
    let error = table.get_many(&["a", "ä"], large.len()).unwrap_err();
    assert_eq!(error.code, ErrorCode::OverLimit);
    assert_eq!(table.get_many(&["a", "nobody"], large.len()).unwrap()[1], None);
}

#[test]
fn vbucket_missing_in_a_cut_has_no_documents() {
    let (_fs, table) = new_table();
    put(&table, 1, "a", 1, Some("one"));
    assert_eq!(vbucket_of("a", VBUCKETS), VbucketId(3));
    assert_eq!(table.get_at("a", &[Seqno(9); 3]).unwrap(), None);
    assert!(table.get_at("a", &[Seqno(9); 4]).unwrap().is_some());
    assert!(rest_of(&mut table.walk(None, Some([Seqno(9); 3].into())).unwrap()).is_empty());
}

/// The floor is newer than a rewind: without the dead entry of the rewind, the removed version
/// would hide the older one.
#[test]
fn a_rewind_and_a_purge_during_a_flush_lose_no_older_version() {
    for merges in [false, true] {
        let (_fs, table) = new_table();
        put(&table, 1, "a", 5, Some("five"));
        if merges {
            flush(&table, &all());
        }
        put(&table, 2, "a", 10, Some("ten"));
        let meanwhile = || {
            table.add_dead_versions(&[rewind("a", 3, 8)]);
            Retention { from: vec![Seqno(10); usize::from(VBUCKETS)] }
        };
        let change = match merges {
            false => table.prepare_flush(meanwhile).unwrap(),
            true => {
                flush(&table, &all());
                table.prepare_full_merge(meanwhile).unwrap()
            }
        };
        installed(change.expect("something to do"));
        assert_eq!(text(&table, "a").as_deref(), Some("five"));
    }
}

#[test]
fn closing_the_store_cancels_a_merge() {
    let (fs, table) = new_table();
    for half in 0..2 {
        for n in 0..1_500 {
            put(&table, 2_000 * half + n + 1, &format!("d{n:04}"), half + 1, Some("{}"));
        }
        flush(&table, &Retention::default());
    }
    let before = files(&fs);
    table.options.stop.store(true, Ordering::Relaxed);
    let refused = table.prepare_full_merge(Retention::default).expect_err("the store is closed");
    assert_eq!(refused.code, ErrorCode::Unavailable);
    assert_eq!(files(&fs), before, "the merge leaves nothing");
    // Flushes go on: memory is bounded until the end.
    put(&table, 9_000, "e", 1, Some("{}"));
    flush(&table, &Retention::default());
    table.options.stop.store(false, Ordering::Relaxed);
    assert_eq!(merge(&table, &Retention::default()).fragments().len(), 1);
}
