//! Tests the states of the parts of producers' commits, and the effects of these states.

use std::sync::Arc;

use bytes::Bytes;
use documents::mutation::Mutation;
use documents::ownership::Ownership;
use documents::record::BucketRecord;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::commits::NewestCommits;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::{BucketId, Epoch, NodeId, Vbuuid};
use proto::rpc::mutation::MutationKind;

use std::time::Duration;

use proto::model::assignment::VbucketSet;

use super::*;
use crate::source::commits::open::LATE_AFTER;
use crate::source::groups::ahead::Positions;
use crate::source::pending::PendingChanges;

const BUCKET: BucketId = BucketId(7);
const TRANSACTION: ProducerTransactionId = ProducerTransactionId(1);
/// The branch of all parts. [`LATER`] is a later branch.
const BRANCH: u64 = 7;
const LATER: u64 = 8;
/// A vbucket of this projector. [`OTHER`] is a vbucket of another projector.
const OWN: VbucketId = VbucketId(0);
const OTHER: VbucketId = VbucketId(1);

fn at(vbuuid: u64, seqno: u64) -> Position {
    Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) }
}

fn commit_of(parts: &[(VbucketId, u64, u64)]) -> PushedCommit {
    let part = |(vbucket, after, end): &(VbucketId, u64, u64)| PushedPart {
        vbucket: *vbucket,
        after: Seqno(*after),
        end: at(BRANCH, *end),
    };
    PushedCommit::new(TRANSACTION, parts.iter().map(part).collect()).expect("a commit")
}

/// Returns a commit with the seqnos 3 to 5 of the own vbucket, and 1 to 2 of the other one.
fn commit() -> PushedCommit {
    commit_of(&[(OWN, 2, 5), (OTHER, 0, 2)])
}

/// Returns a bucket with an open commit, whose own vbucket has this end and these branches.
fn bucket_with(commit: &PushedCommit, end: u64, branches: &[(u64, u64)]) -> Bucket {
    let info = BucketInfo::new(BUCKET, "p", 3, SourceKind::Push, NodeId(1));
    let own = branches.iter().map(|(vbuuid, began)| (Vbuuid(*vbuuid), *began)).collect();
    let mut commits = NewestCommits::default();
    commits.apply_event(&TransactionEvent::Opened(OpenCommit::Pushed(commit.clone())));
    let owned = [OWN, VbucketId(2)].into_iter().collect();
    let ownership = Ownership { owned, ..Ownership::default() };
    let branches = vec![own, Branches::new(), Branches::new()];
    let record = BucketRecord { info, branches, ownership, given_up: Default::default(), commits };
    Bucket::new(record, &[Seqno(end), Seqno(0), Seqno(0)], 1 << 20)
}

/// Records the state of a part as its owner has reported it.
fn note(bucket: &Bucket, commit: &PushedCommit, vbucket: VbucketId, state: PartState) {
    let commit = OpenCommit::Pushed(commit.clone());
    bucket.record_parts(&commit, &[(Participant::Vbucket(vbucket), state)]);
}

fn bucket() -> Bucket {
    bucket_with(&commit(), 9, &[(BRANCH, 0)])
}

fn say_epoch(bucket: &Bucket, epoch: u64, own: Position, other: Position) {
    let cut = Cut::from_positions(vec![own, other, Position::default()]);
    bucket.add_epoch(EpochMark {
        bucket: BUCKET,
        epoch: Epoch(epoch),
        parent: Epoch(epoch - 1),
        cut: Arc::new(cut),
        horizon: Epoch(0),
        points: Arc::default(),
    });
}

fn is_open(bucket: &Bucket) -> bool {
    let named = bucket.report().expect("a report");
    let named = named.pushed();
    assert_eq!(bucket.is_open_pushed(TRANSACTION), !named.is_empty(), "SYNC names what is open");
    let settled =
        bucket.settled().iter().any(|commit| commit.id() == CommitId::Pushed(TRANSACTION));
    assert_eq!(settled, named.is_empty(), "the record keeps what is open");
    !named.is_empty()
}

fn awaited_end(bucket: &Bucket, vbucket: VbucketId) -> Option<Seqno> {
    bucket.awaited_ends().get(&vbucket).copied()
}

/// Returns true if a reader of the change with this seqno of the own vbucket waits.
fn waits(bucket: &Bucket, seqno: u64) -> bool {
    bucket.incomplete_pushed_at(OWN, Seqno(seqno)).is_some()
}

#[test]
fn an_epoch_has_a_commit_when_it_has_all_parts_on_their_branches() {
    for (own, other, has_it) in [
        (at(BRANCH, 9), at(BRANCH, 2), true),
        (at(BRANCH, 5), at(BRANCH, 2), true),
        (at(BRANCH, 4), at(BRANCH, 2), false),
        (at(BRANCH, 5), at(BRANCH, 1), false),
        (at(BRANCH, 5), at(LATER, 9), false),
        (at(LATER, 9), at(BRANCH, 2), false),
        (at(BRANCH, 9), Position::default(), false),
    ] {
        let bucket = bucket();
        assert!(is_open(&bucket), "no epoch");
        say_epoch(&bucket, 1, own, other);
        assert_eq!(is_open(&bucket), !has_it, "{own:?} {other:?}");
    }
    // The own failover log shows whether a later branch has the part, and a position of another history proves nothing.
    for (branch, began, expected) in
        [(LATER, 5, PartState::Shown), (LATER, 4, PartState::Lost), (99, 5, PartState::Durable)]
    {
        let bucket = bucket_with(&commit(), 9, &[(LATER, began), (BRANCH, 0)]);
        say_epoch(&bucket, 1, at(branch, 9), Position::default());
        let told = bucket.look_at_pushed(&commit(), &[OWN].into_iter().collect());
        assert_eq!(told, [(OWN, expected)]);
    }
}

#[test]
fn other_owners_part_on_a_later_branch_is_queried() {
    for (told, stays) in [
        (PartState::Missing, true),
        (PartState::Durable, true),
        (PartState::Shown, false),
        (PartState::Lost, false),
    ] {
        let bucket = bucket();
        say_epoch(&bucket, 1, at(BRANCH, 9), at(LATER, 9));
        note(&bucket, &commit(), OTHER, told);
        assert_eq!(is_open(&bucket), stays, "{told:?}");
        assert_eq!(waits(&bucket, 4), told == PartState::Missing, "{told:?}");
    }
}

#[test]
fn reports_about_another_version_are_ignored() {
    let bucket = bucket();
    let anew = commit_of(&[(OWN, 2, 5), (OTHER, 4, 6)]);
    note(&bucket, &anew, OTHER, PartState::Lost);
    assert!(is_open(&bucket));
    note(&bucket, &commit(), OTHER, PartState::Lost);
    assert!(!is_open(&bucket));
    bucket.record_pushed_commits(&[TransactionEvent::Opened(OpenCommit::Pushed(anew))]);
    assert!(is_open(&bucket), "committed anew");
}

#[test]
fn lost_part_is_not_reported_and_others_stay_together() {
    let (third, fourth) = ((VbucketId(2), 0, 1), (OTHER, 0, 2));
    let bucket = bucket_with(&commit_of(&[(OWN, 2, 5), fourth, third]), 9, &[(BRANCH, 0)]);
    note(&bucket, &commit_of(&[(OWN, 2, 5), fourth, third]), OTHER, PartState::Lost);
    assert!(is_open(&bucket));
    let named = bucket.report().expect("a report");
    let named = named.pushed();
    assert_eq!(named, [&commit_of(&[(OWN, 2, 5), third])]);
    assert!(waits(&bucket, 5), "the third part is missing");
}

#[test]
fn a_reader_waits_for_the_changes_of_a_commit_that_lacks_parts_and_for_no_others() {
    let bucket = bucket();
    let waiting: Vec<u64> = (1..=9).filter(|seqno| waits(&bucket, *seqno)).collect();
    assert_eq!(waiting, [3, 4, 5]);
    bucket.record_all_parts_durable(&commit());
    assert!(!waits(&bucket, 4) && is_open(&bucket));
    // The own part is lost, and others have its seqnos.
    let three = commit_of(&[(OWN, 2, 5), (OTHER, 0, 2), (VbucketId(2), 0, 1)]);
    let bucket = bucket_with(&three, 9, &[(LATER, 2), (BRANCH, 0)]);
    assert!(is_open(&bucket) && bucket.has_incomplete_pushed() && !waits(&bucket, 4));
}

/// Readers know a commit before its documents can be read.
#[test]
fn a_commit_is_announced_before_it_is_published() {
    let bucket = bucket_with(&commit(), 9, &[(BRANCH, 0)]);
    let next = PushedCommit {
        transaction: ProducerTransactionId(2),
        ..commit_of(&[(OWN, 9, 10), (OTHER, 2, 3)])
    };
    bucket.record_pushed_commits(&[TransactionEvent::Opened(OpenCommit::Pushed(next))]);
    assert_eq!(bucket.durable().get(OWN).seqno, Seqno(9), "nothing is published");
    assert_eq!(bucket.incomplete_pushed_at(OWN, Seqno(10)), Some(ProducerTransactionId(2)));
}

#[test]
fn only_owners_of_parts_have_a_commit_open_and_a_vbucket_on_its_way_keeps_it() {
    let elsewhere = commit_of(&[(OTHER, 0, 2), (VbucketId(3), 0, 1)]);
    let bucket = bucket_with(&elsewhere, 9, &[(BRANCH, 0)]);
    assert!(!is_open(&bucket), "it was handed over, and the record forgets it");
    bucket.set_copied(
        vec![vec![(Vbuuid(BRANCH), 0)], Branches::new(), Branches::new()],
        [(OTHER, Seqno(2))],
    );
    assert_eq!(bucket.settled(), [], "its vbucket is on its way here");
    assert_eq!(bucket.report().expect("a report").open, [], "and not owned yet");
}

#[test]
fn an_owner_tells_what_it_knows_and_awaits_what_is_missing() {
    let wanted: VbucketSet = [OWN, OTHER].into_iter().collect();
    let told = |bucket: &Bucket, after, end| {
        let asked = commit_of(&[(OWN, after, end), (OTHER, 0, 2)]);
        bucket.look_at_pushed(&asked, &wanted)
    };
    let bucket = bucket();
    say_epoch(&bucket, 1, at(BRANCH, 5), Position::default());
    assert_eq!(told(&bucket, 2, 5), [(OWN, PartState::Shown)], "and nothing of others' vbuckets");
    assert_eq!(told(&bucket, 5, 9), [(OWN, PartState::Durable)]);
    assert_eq!(awaited_end(&bucket, OWN), None);
    assert_eq!(told(&bucket, 9, 12), [(OWN, PartState::Missing)]);
    assert_eq!(awaited_end(&bucket, OWN), Some(Seqno(12)));
    assert_eq!(told(&bucket, 9, 10), [(OWN, PartState::Missing)]);
    assert_eq!(awaited_end(&bucket, OWN), Some(Seqno(12)), "the farthest counts");
    assert_eq!(bucket.look_at_pushed(&commit(), &[OTHER].into_iter().collect()), []);
    let lost = bucket_with(&commit(), 9, &[(LATER, 4), (BRANCH, 0)]);
    assert_eq!(told(&lost, 2, 5), [(OWN, PartState::Lost)]);
    let unknown = bucket_with(&commit(), 9, &[(LATER, 0)]);
    assert_eq!(told(&unknown, 2, 5), [(OWN, PartState::Missing)], "the branch may begin yet");
    unknown.set_given_up([(OWN, vec![(Vbuuid(BRANCH), 0)])].into());
    assert_eq!(told(&unknown, 2, 5), [(OWN, PartState::Lost)], "the vbucket has left it");
}

#[test]
fn missing_part_in_an_owned_vbucket_is_awaited() {
    let bucket = bucket_with(&commit_of(&[(OWN, 2, 5), (VbucketId(2), 0, 4)]), 9, &[(BRANCH, 0)]);
    assert_eq!(
        (awaited_end(&bucket, OWN), awaited_end(&bucket, VbucketId(2))),
        (None, Some(Seqno(4)))
    );
    assert_eq!(awaited_end(&bucket, OTHER), None);
}

#[tokio::test(start_paused = true)]
async fn late_commits_are_queried_in_rounds() {
    let bucket = bucket();
    let more = (2..=5).map(|n| PushedCommit { transaction: ProducerTransactionId(n), ..commit() });
    let more: Vec<_> =
        more.map(|commit| TransactionEvent::Opened(OpenCommit::Pushed(commit))).collect();
    bucket.record_pushed_commits(&more);
    assert_eq!(bucket.commits_to_query(9), [], "they are young");
    tokio::time::sleep(LATE_AFTER).await;
    let asked = || -> Vec<u64> {
        let queried = bucket.commits_to_query(2).into_iter();
        let number = |(commit, participants): (OpenCommit, _)| {
            assert_eq!(participants, [Participant::Vbucket(OTHER)]);
            commit.pushed().expect("of a producer").transaction.0
        };
        queried.map(number).collect()
    };
    assert_eq!([asked(), asked(), asked()], [vec![1, 2], vec![3, 4], vec![5, 1]]);
    bucket.look_at_pushed(&commit_of(&[(OWN, 9, 12), (OTHER, 0, 2)]), &[OWN].into_iter().collect());
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(awaited_end(&bucket, OWN), Some(Seqno(12)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(awaited_end(&bucket, OWN), None, "whoever waits asks again");
}

/// A producer may commit again at positions that were not queried, so the owner of a lost part is
/// queried further.
#[tokio::test(start_paused = true)]
async fn owner_of_a_lost_part_is_still_queried() {
    let commit = commit_of(&[(OWN, 2, 5), (OTHER, 0, 2), (VbucketId(2), 0, 4)]);
    let bucket = bucket_with(&commit, 9, &[(BRANCH, 0)]);
    tokio::time::sleep(LATE_AFTER).await;
    let told = || bucket.report().expect("a report").pushed()[0].parts.len();
    note(&bucket, &commit, OTHER, PartState::Lost);
    let query = (OpenCommit::Pushed(commit.clone()), vec![Participant::Vbucket(OTHER)]);
    assert_eq!(bucket.commits_to_query(9), [query]);
    note(&bucket, &commit, OTHER, PartState::Missing);
    assert_eq!(told(), 2, "a lost part stays lost");
    let known = commit_of(&[(OWN, 0, 1), (OTHER, 7, 9)]);
    let known = PushedCommit { transaction: ProducerTransactionId(2), ..known };
    let owner = bucket_with(&known, 9, &[(LATER, 1), (BRANCH, 0)]);
    assert_eq!(
        owner.look_at_pushed(&commit, &[OWN].into_iter().collect()),
        [(OWN, PartState::Lost)]
    );
    let mut anew = commit.clone();
    (anew.parts[0].after, anew.parts[0].end) = (Seqno(20), at(LATER, 23));
    let awaits = || owner.awaits_commit(&anew, &[OWN].into_iter().collect());
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(awaits());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!awaits(), "whoever waits asks again");
}

#[test]
fn received_vbucket_adds_its_open_commits() {
    let bucket = bucket();
    let anew = commit_of(&[(OWN, 2, 5), (OTHER, 4, 6)]);
    assert_eq!(bucket.steps_for_received(OTHER, vec![commit()]), Ok(vec![]), "it is known");
    assert_eq!(bucket.steps_for_received(OTHER, vec![]), Ok(vec![]), "an own part keeps it");
    let refused = bucket.steps_for_received(OTHER, vec![anew.clone()]).expect_err("an own part");
    assert_eq!(refused.code, ErrorCode::Unavailable);
    // Only the vbucket in hand-over has contained the known version.
    let elsewhere = commit_of(&[(OTHER, 0, 2), (VbucketId(3), 0, 1)]);
    let bucket = bucket_with(&elsewhere, 9, &[(BRANCH, 0)]);
    assert_eq!(
        bucket.steps_for_received(OTHER, vec![anew.clone()]),
        Ok(vec![TransactionEvent::Opened(OpenCommit::Pushed(anew))])
    );
    let ended = Ok(vec![TransactionEvent::Settled(CommitId::Pushed(TRANSACTION))]);
    assert_eq!(bucket.steps_for_received(OTHER, vec![]), ended, "it was cancelled at the owner");
    assert_eq!(bucket.steps_for_received(VbucketId(2), vec![]), Ok(vec![]), "another vbucket");
}

/// The producer has committed again while the other vbucket was released, so that vbucket has only
/// the former version.
#[test]
fn received_version_with_a_lost_part_is_ignored() {
    let anew = {
        let mut anew = commit();
        (anew.parts[0].after, anew.parts[0].end) = (Seqno(5), at(LATER, 7));
        anew
    };
    let bucket = bucket_with(&anew, 9, &[(LATER, 4), (BRANCH, 0)]);
    assert_eq!(bucket.steps_for_received(OTHER, vec![commit()]), Ok(vec![]));
    let elsewhere = commit_of(&[(OWN, 2, 5), (OTHER, 1, 3)]);
    let refused = bucket.steps_for_received(OTHER, vec![elsewhere]).expect_err("at another place");
    assert_eq!(refused.code, ErrorCode::Unavailable);
    let lost = bucket_with(&commit(), 9, &[(LATER, 4), (BRANCH, 0)]);
    let refused = lost.steps_for_received(OTHER, vec![anew]).expect_err("the known one is lost");
    assert_eq!(refused.code, ErrorCode::Unavailable);
}

#[test]
fn reports_are_separate_for_each_version() {
    let bucket = bucket();
    bucket.record_all_parts_durable(&commit_of(&[(OWN, 2, 5), (OTHER, 4, 6)]));
    assert!(waits(&bucket, 4));
    bucket.record_all_parts_durable(&commit());
    assert!(!waits(&bucket, 4));
}

/// A group ends one version of a commit while another version is not published yet.
#[test]
fn new_version_survives_the_end_of_the_old_one() {
    let bucket = Arc::new(bucket());
    say_epoch(&bucket, 1, at(BRANCH, 9), at(BRANCH, 2));
    let settled = |numbered: &PushedCommit| {
        let mut commits = NewestCommits::default();
        commits.apply_event(&TransactionEvent::Opened(OpenCommit::Pushed(numbered.clone())));
        let behind = Positions { commits, ..bucket.published() };
        let mut pending = PendingChanges::new(Arc::clone(&bucket), behind);
        let document = Bytes::from_static(b"{}");
        pending.add(Mutation::new((OWN, Seqno(10)), "a".into(), MutationKind::Upsert, document));
        pending.drop_ended_commits();
        pending.commits.open().len() == 0
    };
    assert!(settled(&commit()));
    assert!(!settled(&commit_of(&[(OWN, 2, 5), (OTHER, 4, 6)])));
}
