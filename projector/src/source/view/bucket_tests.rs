//! Tests of a bucket's published state.

use std::collections::BTreeMap;

use bytes::Bytes;
use documents::ownership::Ownership;
use proto::model::assignment::VbucketSet;
use proto::model::bucket::SourceKind;
use proto::model::ids::{BucketId, Epoch, NodeId, Vbuuid, vbucket_of};
use proto::rpc::mutation::MutationKind;

use proto::ErrorCode;

use super::*;

const BUCKET: BucketId = BucketId(7);
const VBUCKETS: u16 = 4;

fn record() -> BucketRecord {
    let info = BucketInfo::new(BUCKET, "b", VBUCKETS, SourceKind::Embedded, NodeId(1));
    let branches = (1..=4).map(|n| vec![(Vbuuid(n), 0)]).collect();
    let ownership = Ownership { owned: VbucketSet::all(VBUCKETS), ..Default::default() };
    BucketRecord {
        info,
        branches,
        ownership,
        given_up: BTreeMap::new(),
        commits: Default::default(),
    }
}

#[test]
fn the_head_is_bounded_and_reports_dropped_positions() {
    let bucket = Bucket::new(record(), &[Seqno(0); VBUCKETS as usize], 2_000);
    let (_, begin, _) = bucket.end();
    let mut next = [0; VBUCKETS as usize];
    let mut publish = |id: &str| {
        let vbucket = vbucket_of(id, VBUCKETS);
        let next = &mut next[usize::from(vbucket.0)];
        *next += 1;
        let (document, kind) = (Bytes::from_static(b"1"), MutationKind::Upsert);
        let mutation = Mutation::new((vbucket, Seqno(*next)), id.into(), kind, document);
        bucket.publish(bucket.to_publish(&[Arc::new(mutation)]), None, (&[], Vec::new()));
    };
    publish("first");
    let (found, next) = bucket.read_head(begin, 10).expect("nothing was forgotten");
    assert_eq!(found.len(), 1);
    (0..50).for_each(|n| publish(&n.to_string()));
    assert!(bucket.read_head(begin, 10).is_none());
    assert!(bucket.read_head(next, 10).is_none());
    let (cut, end, _) = bucket.end();
    assert_eq!(bucket.read_head(end, 10).map(|(found, _)| found.len()), Some(0));
    assert_eq!(cut.distance_from(&Cut::zero(VBUCKETS)), 51);
}

/// The result of groups of any size, with a head of any size, equals that of groups with single
/// mutations.
#[test]
fn a_group_that_exceeds_the_head_leaves_its_newest_mutations_there() {
    for head_bytes_max in [0, 100, 300, 1_000, 100_000] {
        let new = || Bucket::new(record(), &[Seqno(0); VBUCKETS as usize], head_bytes_max);
        let (whole, single) = (new(), new());
        let (mut next, mut begins) = ([0; VBUCKETS as usize], vec![whole.end().1]);
        for n in 0..60 {
            let mutations = (0..1 + n % 9).map(|of_group| {
                let id = format!("{n}-{of_group}");
                let vbucket = vbucket_of(&id, VBUCKETS);
                next[usize::from(vbucket.0)] += 1;
                let place = (vbucket, Seqno(next[usize::from(vbucket.0)]));
                let document = Bytes::from(vec![b'1'; (n * 7 + of_group * 13) % 60]);
                Arc::new(Mutation::new(place, (*id).into(), MutationKind::Upsert, document))
            });
            let mutations: Vec<_> = mutations.collect();
            whole.publish(whole.to_publish(&mutations), None, (&[], Vec::new()));
            for mutation in &mutations {
                let one = single.to_publish(std::slice::from_ref(mutation));
                single.publish(one, None, (&[], Vec::new()));
            }
            assert_eq!((whole.end().0, whole.end().1), (single.end().0, single.end().1));
            begins.push(whole.end().1);
            for begin in &begins {
                let ids = |bucket: &Bucket| {
                    let found = bucket.read_head(*begin, usize::MAX);
                    found.map(|(found, _)| {
                        found.iter().map(|m| m.id.to_string()).collect::<Vec<_>>()
                    })
                };
                assert_eq!(ids(&whole), ids(&single), "{head_bytes_max} bytes, group {n}");
            }
        }
    }
}

#[test]
fn timestamps_are_bounded_without_a_new_horizon() {
    let add = |vbuckets: u16, count: u64| {
        let mut record = record();
        record.info.vbuckets = vbuckets;
        record.branches = vec![Vec::new(); usize::from(vbuckets)];
        let bucket = Bucket::new(record, &vec![Seqno(0); usize::from(vbuckets)], 1 << 20);
        let cut = Arc::new(Cut::zero(vbuckets));
        for epoch in 1..=count {
            let (epoch, parent, cut) = (Epoch(epoch), Epoch(epoch - 1), Arc::clone(&cut));
            bucket.add_epoch(EpochMark {
                bucket: BUCKET,
                epoch,
                parent,
                cut,
                horizon: Epoch(1),
                points: Arc::default(),
            });
        }
        bucket.epochs_after(Epoch(0))
    };
    let kept = add(4, 5_000);
    assert_eq!(kept.len(), 4096);
    assert_eq!(kept.last().map(|mark| mark.epoch), Some(Epoch(5_000)), "the oldest go");
    assert_eq!(add(1024, 5_000).len(), 1024, "many vbuckets make large cuts");
    assert_eq!(add(16_384, 300).len(), 256);
}

#[test]
fn positions_outside_the_history_are_refused() {
    let mut record = record();
    record.branches[0] = vec![(Vbuuid(9), 10), (Vbuuid(1), 0)];
    let bucket = Bucket::new(record, &[Seqno(12), Seqno(3), Seqno(0), Seqno(0)], 1 << 20);
    let check = |vbuuid, seqno| {
        let mut cut = Cut::zero(VBUCKETS);
        cut.set(VbucketId(0), Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) });
        bucket.check_place(&cut).map_err(|error| error.code)
    };
    assert_eq!((check(9, 12), check(1, 10), check(0, 0)), (Ok(()), Ok(()), Ok(())));
    for (vbuuid, seqno) in [(9, 13), (9, 10), (1, 11), (5, 1)] {
        assert_eq!(check(vbuuid, seqno), Err(ErrorCode::OutOfOrder), "{vbuuid}/{seqno}");
    }
    assert!(bucket.check_place(&Cut::zero(3)).is_err());
}

#[tokio::test]
async fn change_after_the_check_ends_the_wait() {
    let bucket = Bucket::new(record(), &[Seqno(0); VBUCKETS as usize], 2_000);
    let mut looks = 0;
    let waits = bucket.wait_until_some(|| {
        looks += 1;
        // As another thread does it between the look and the wait.
        bucket.wake();
        (looks == 2).then_some(())
    });
    let found = tokio::time::timeout(std::time::Duration::from_secs(10), waits).await;
    assert_eq!(found.expect("it is woken"), Some(()));
}
