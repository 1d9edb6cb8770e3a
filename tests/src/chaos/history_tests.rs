//! Tests that the judge finds each kind of fault.

use super::super::documents::INDEXES;
use super::*;

/// Returns the history of two documents of one writer: both are written together, then the first
/// one alone.
fn history() -> (History, usize, usize) {
    let mut history = History::new(7);
    let (a, b) = (history.add("w0-0-0".into()), history.add("w0-1-0".into()));
    for writes in [vec![(a, false), (b, false)], vec![(a, false)]] {
        let (statement, _) = history.send(&writes);
        history.acknowledge(statement);
    }
    (history, a, b)
}

/// Returns the rows of index by_n for documents at given versions, in index order.
fn rows(history: &History, shown: &[(usize, u64)]) -> Vec<Row> {
    let mut rows: Vec<_> = shown
        .iter()
        .map(|(document, version)| (history.content(*document, *version).n, *document, *version))
        .collect();
    rows.sort();
    let row = |(n, document, version): (i64, usize, u64)| Row {
        id: history.id(document).to_owned(),
        version,
        keys: vec![Some(n.to_string())],
    };
    rows.into_iter().map(row).collect()
}

fn judge(history: &mut History, not_before: Option<Tick>, rows: &[Row]) -> Verdict {
    let end = history.tick();
    let index = &INDEXES[0];
    history.judge(&Scan { index, range: None, not_before, end, ordered: true, rows })
}

#[test]
fn request_plus_must_show_acknowledged_writes() {
    let (mut history, a, b) = history();
    let now = history.tick();
    let new = rows(&history, &[(a, 2), (b, 1)]);
    assert!(judge(&mut history, Some(now), &new).is_clean());
    let old = rows(&history, &[(a, 1), (b, 1)]);
    assert_eq!(judge(&mut history, Some(now), &old).ghost, 1, "an older version");
    assert!(judge(&mut history, None, &old).is_clean(), "any may be old");
    assert!(judge(&mut history, None, &[]).is_clean(), "from before the first");
    let lost = rows(&history, &[(a, 2)]);
    assert_eq!(judge(&mut history, Some(now), &lost).lost, 1);
}

#[test]
fn the_judge_finds_doubled_unknown_and_misordered_entries() {
    let (mut history, a, b) = history();
    let now = history.tick();
    let good = rows(&history, &[(a, 2), (b, 1)]);
    let mut doubled = good.clone();
    doubled.push(good[1].clone());
    assert_eq!(judge(&mut history, Some(now), &doubled).doubled, 1);
    let mut ghost = good.clone();
    ghost.push(Row { id: "never".into(), version: 1, keys: vec![None] });
    assert_eq!(judge(&mut history, Some(now), &ghost).ghost, 1);
    let mut future = good.clone();
    future[0].version = 9;
    assert_eq!(judge(&mut history, None, &future).ghost, 1);
    let back: Vec<_> = good.iter().rev().cloned().collect();
    assert_eq!(judge(&mut history, Some(now), &back).misordered, 1);
}

#[test]
fn the_judge_finds_a_split_statement() {
    let (mut history, a, b) = history();
    for half in [vec![(a, 1)], vec![(a, 2)], vec![(b, 1)]] {
        let half = rows(&history, &half);
        assert!(judge(&mut history, None, &half).torn > 0, "{half:?}");
    }
}

#[test]
fn an_unanswered_write_may_appear_and_then_stays() {
    let (mut history, a, b) = history();
    history.send(&[(b, true)]);
    let now = history.tick();
    let (before, after) = (rows(&history, &[(a, 2), (b, 1)]), rows(&history, &[(a, 2)]));
    assert!(judge(&mut history, Some(now), &before).is_clean());
    assert!(judge(&mut history, Some(now), &after).is_clean());
    let later = history.tick();
    assert_eq!(judge(&mut history, Some(later), &before).ghost, 1, "it had shown");
}

#[test]
fn two_scans_at_one_epoch_must_show_the_same_versions() {
    let (mut history, a, b) = history();
    let (old, new) = (rows(&history, &[(a, 1), (b, 1)]), rows(&history, &[(a, 2), (b, 1)]));
    let (old, new) = (judge(&mut history, None, &old), judge(&mut history, None, &new));
    assert!(history.judge_together(&new, &new).is_empty());
    assert_eq!(history.judge_together(&old, &new).len(), 1);
}
