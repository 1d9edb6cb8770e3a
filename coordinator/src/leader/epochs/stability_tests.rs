use proto::model::cut::Position;
use proto::model::ids::{Epoch, Seqno, Vbuuid};

use super::*;

const BUCKET: BucketId = BucketId(1);

fn cut(seqnos: [u64; 2]) -> Cut {
    let at = |seqno| Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) };
    Cut::from_positions(seqnos.into_iter().map(at).collect())
}

fn indexer(seqnos: [u64; 2], queue_percent: u64) -> BucketProgress {
    BucketProgress {
        bucket: BUCKET,
        high_watermark: cut(seqnos),
        applied: Epoch(1),
        durable: Epoch(1),
        queue_bytes: queue_percent,
        queue_bytes_max: 100,
    }
}

fn told(cuts: &[[u64; 2]]) -> EpochCutChooser {
    let mut stability = EpochCutChooser::default();
    for seqnos in cuts {
        stability.report(BUCKET, cut(*seqnos), &Cut::zero(2)).unwrap();
    }
    stability
}

#[test]
fn the_newest_closed_cut_is_promoted_once() {
    let mut stability = told(&[[1, 0], [4, 4], [3, 4]]);
    let choice = stability.choose(BUCKET, &Cut::zero(2), &[], 0);
    assert_eq!(choice, CutChoice::Promote(cut([4, 4])), "the third report was overtaken");
    assert_eq!(stability.choose(BUCKET, &cut([4, 4]), &[], 0), CutChoice::Nothing);
    assert_eq!(stability.choose(BucketId(9), &Cut::zero(2), &[], 0), CutChoice::Nothing);
}

#[test]
fn a_report_of_another_shape_is_refused() {
    let refused =
        EpochCutChooser::default().report(BUCKET, Cut::zero(3), &Cut::zero(2)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidParameter);
}

#[test]
fn a_waiter_is_served_at_once_but_only_from_reported_cuts() {
    let mut stability = told(&[[5, 5]]);
    let beyond = stability.add_waiter(BUCKET, cut([6, 5]));
    assert_eq!(stability.choose(BUCKET, &Cut::zero(2), &[], 0), CutChoice::Promote(cut([5, 5])));
    stability.report(BUCKET, cut([6, 6]), &Cut::zero(2)).unwrap();
    assert_eq!(stability.choose(BUCKET, &Cut::zero(2), &[], 0), CutChoice::PromoteNow(cut([6, 6])));
    stability.remove_waiter(beyond);
    assert_eq!(stability.choose(BUCKET, &Cut::zero(2), &[], 0), CutChoice::Promote(cut([6, 6])));
}

#[test]
fn slow_indexers_bound_the_choice_to_a_closed_cut() {
    let mut stability = told(&[[2, 2], [4, 4], [8, 8]]);
    let (fast, slow) = (indexer([8, 8], 0), indexer([2, 2], 60));
    // The mean is 5 and the queues are 30 % full, so the bound is a third of the way up to 8.
    let choice = stability.choose(BUCKET, &Cut::zero(2), &[&fast, &slow], 0);
    assert_eq!(choice, CutChoice::Promote(cut([4, 4])));
    let (fast, slow) = (indexer([8, 8], 100), indexer([2, 2], 100));
    let choice = stability.choose(BUCKET, &Cut::zero(2), &[&fast, &slow], 0);
    assert_eq!(choice, CutChoice::Promote(cut([8, 8])), "full queues must be emptied");
}

#[test]
fn slow_indexers_delay_epochs_for_a_limited_time() {
    let mut stability = told(&[[8, 8]]);
    let slow = indexer([2, 2], 60);
    let zero = Cut::zero(2);
    assert_eq!(stability.choose(BUCKET, &zero, &[&slow], 1000), CutChoice::Hold);
    assert_eq!(stability.choose(BUCKET, &zero, &[&slow], 1000 + HOLD_MS_MAX - 1), CutChoice::Hold);
    let choice = stability.choose(BUCKET, &zero, &[&slow], 1000 + HOLD_MS_MAX);
    assert_eq!(choice, CutChoice::Promote(cut([8, 8])));
    assert_eq!(stability.epochs_past_slow_indexers(), [], "the cut may still fall");
    stability.end_wait(BUCKET);
    assert_eq!(stability.epochs_past_slow_indexers(), [(BUCKET, 1)]);
    let want = stability.add_waiter(BUCKET, cut([8, 0]));
    assert_eq!(stability.choose(BUCKET, &zero, &[&slow], 0), CutChoice::PromoteNow(cut([8, 8])));
    stability.end_wait(BUCKET);
    assert_eq!(stability.epochs_past_slow_indexers(), [(BUCKET, 1)], "a scan waits for it");
    stability.remove_waiter(want);
}

#[test]
fn many_reports_are_thinned_and_the_newest_stays() {
    let many: Vec<[u64; 2]> = (1..=1000).map(|seqno| [seqno, seqno]).collect();
    let mut stability = told(&many);
    assert!(stability.buckets[&BUCKET].cuts.len() <= CLOSED_MAX);
    let choice = stability.choose(BUCKET, &Cut::zero(2), &[], 0);
    assert_eq!(choice, CutChoice::Promote(cut([1000, 1000])));
    stability.retain(|_| false);
    assert_eq!(stability.choose(BUCKET, &Cut::zero(2), &[], 0), CutChoice::Nothing);
}

#[test]
fn a_new_branch_at_the_same_seqno_advances() {
    let mut stability = told(&[[5, 5]]);
    let mut branched = cut([5, 5]);
    let position = Position { vbuuid: Vbuuid(9), seqno: Seqno(5) };
    branched.set(proto::model::ids::VbucketId(1), position);
    stability.report(BUCKET, branched.clone(), &cut([5, 5])).unwrap();
    assert_eq!(stability.choose(BUCKET, &cut([5, 5]), &[], 0), CutChoice::Promote(branched));
}

#[test]
fn a_queue_that_its_stream_fills_counts_as_slow_at_default_sizes() {
    // The default limit of an indexer with 512 MiB.
    let waiting = |seqnos, queue_bytes| BucketProgress {
        queue_bytes,
        queue_bytes_max: 64 << 20,
        ..indexer(seqnos, 0)
    };
    let mut stability = told(&[[2, 2], [4, 4], [8, 8]]);
    let (fast, slow) = (waiting([8, 8], 6 << 20), waiting([2, 2], 0));
    // The mean is 5, and 6 of 16 MiB that the streams can fill lead to 6.
    let choice = stability.choose(BUCKET, &Cut::zero(2), &[&fast, &slow], 0);
    assert_eq!(choice, CutChoice::Promote(cut([4, 4])));
    let usual = waiting([8, 8], 3 << 20);
    let choice = stability.choose(BUCKET, &Cut::zero(2), &[&usual, &slow], 0);
    assert_eq!(choice, CutChoice::Promote(cut([8, 8])), "no queue is half full");
}
