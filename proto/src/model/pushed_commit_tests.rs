//! Tests that no cut splits a commit of a producer.

use proptest::prelude::*;

use super::*;
use crate::model::ids::Vbuuid;

const VBUCKETS: u16 = 4;
const BRANCH: Vbuuid = Vbuuid(7);

fn cut(seqnos: [u64; VBUCKETS as usize]) -> Cut {
    let at = |seqno| Position {
        vbuuid: if seqno == 0 { Vbuuid(0) } else { BRANCH },
        seqno: Seqno(seqno),
    };
    Cut::from_positions(seqnos.map(at).to_vec())
}

fn one_branch() -> FailoverLogs {
    FailoverLogs::new(vec![vec![(BRANCH, 0)]; usize::from(VBUCKETS)])
}

/// A commit with these parts: vbucket, seqno before it, last seqno.
fn commit(transaction: u64, parts: &[(u16, u64, u64)]) -> PushedCommit {
    let part = |(vbucket, after, end): &(u16, u64, u64)| PushedPart {
        vbucket: VbucketId(*vbucket),
        after: Seqno(*after),
        end: Position { vbuuid: BRANCH, seqno: Seqno(*end) },
    };
    PushedCommit::new(ProducerTransactionId(transaction), parts.iter().map(part).collect()).unwrap()
}

fn fallen(commits: &[PushedCommit], logs: &FailoverLogs, from: [u64; 4]) -> Cut {
    let mut at = cut(from);
    avoid_split_commits(commits.iter(), (&cut([0; 4]), logs), &mut at);
    at
}

#[test]
fn a_split_commit_moves_the_cut_before_it() {
    let first = commit(1, &[(0, 2, 5), (1, 0, 3)]);
    let behind = commit(2, &[(0, 6, 8), (2, 1, 2)]);
    let both = [first.clone(), behind];
    assert_eq!(fallen(&both, &one_branch(), [9, 3, 4, 9]), cut([9, 3, 4, 9]), "nothing is missing");
    assert_eq!(fallen(&both, &one_branch(), [9, 2, 4, 9]), cut([2, 0, 1, 9]));
    assert_eq!(fallen(&both, &one_branch(), [7, 3, 1, 9]), cut([6, 3, 1, 9]));
    let published = cut([5, 3, 0, 0]);
    let mut at = cut([9, 3, 0, 0]);
    avoid_split_commits(both.iter(), (&published, &one_branch()), &mut at);
    assert_eq!(at, cut([6, 3, 0, 0]), "what is published stays");
    let mut at = cut([9, 2, 1, 0]);
    avoid_split_commits(both.iter(), (&cut([5, 0, 0, 0]), &one_branch()), &mut at);
    assert_eq!(at, cut([6, 2, 1, 0]), "and holds nothing up if it was halved");
}

#[test]
fn a_part_is_lost_when_its_vbucket_has_left_its_branch_and_not_before_the_branch_begins() {
    let part = commit(1, &[(0, 2, 5)]).parts[0];
    let branches = |of: &[(u64, u64)]| -> Branches {
        of.iter().map(|(vbuuid, began)| (Vbuuid(*vbuuid), *began)).collect()
    };
    for (known, given_up, is_lost) in [
        (&[(7, 0)][..], &[][..], false),
        (&[(8, 5), (7, 0)], &[], false),
        (&[(8, 4), (7, 0)], &[], true),
        (&[(9, 9), (8, 4), (7, 0)], &[], true),
        (&[(8, 0)], &[], false),
        (&[(8, 0)], &[(7, 0)], true),
        (&[], &[(7, 0)], true),
        (&[], &[(6, 0)], false),
        (&[(8, 6), (7, 0)], &[(7, 0)], false),
    ] {
        let found = part.is_lost(&branches(known), &branches(given_up));
        assert_eq!(found, is_lost, "{known:?} {given_up:?}");
    }
}

#[test]
fn nobody_waits_for_a_part_whose_branch_has_ended_before_it_and_everybody_for_an_unknown_branch() {
    let open = [commit(1, &[(0, 2, 5), (1, 0, 3)])];
    let logs = |of_second: Branches| {
        let one = || vec![(BRANCH, 0)];
        FailoverLogs::new(vec![one(), of_second, one(), one()])
    };
    let goes_on = logs(vec![(Vbuuid(8), 2), (BRANCH, 0)]);
    assert_eq!(fallen(&open, &goes_on, [5, 2, 0, 0]), cut([5, 2, 0, 0]));
    for waits in [vec![(Vbuuid(8), 3), (BRANCH, 0)], vec![], vec![(Vbuuid(9), 0)]] {
        let seqno = if waits.is_empty() { 0 } else { 2 };
        assert_eq!(
            fallen(&open, &logs(waits.clone()), [5, seqno, 0, 0]).get(VbucketId(0)).seqno,
            Seqno(2),
            "{waits:?}"
        );
    }
}

/// A cut with the position of vbucket 1 on another branch.
fn cut_on(branch: u64, seqnos: [u64; 4]) -> Cut {
    let mut at = cut(seqnos);
    at.set(VbucketId(1), Position { vbuuid: Vbuuid(branch), seqno: Seqno(seqnos[1]) });
    at
}

/// Returns the failover logs of a bucket whose vbucket 1 has these branches.
fn logs_of_second(second: &[(u64, u64)]) -> FailoverLogs {
    let one = || vec![(BRANCH, 0)];
    let second = second.iter().map(|(vbuuid, began)| (Vbuuid(*vbuuid), *began)).collect();
    FailoverLogs::new(vec![one(), second, one(), one()])
}

#[test]
fn a_cut_has_a_part_only_on_a_history_with_the_end_of_the_part() {
    let open = [commit(1, &[(0, 2, 5), (1, 3, 6)])];
    let fallen = |logs: &FailoverLogs| {
        let mut at = cut_on(8, [9, 20, 0, 0]);
        avoid_split_commits(open.iter(), (&cut([0; 4]), logs), &mut at);
        at
    };
    let held = cut_on(8, [2, 20, 0, 0]);
    let whole = cut_on(8, [9, 20, 0, 0]);
    assert_eq!(fallen(&logs_of_second(&[(8, 0)])), held, "the branch of the part may begin yet");
    assert_eq!(fallen(&logs_of_second(&[(8, 6), (7, 0)])), whole, "a branch behind the part");
    assert_eq!(fallen(&logs_of_second(&[(8, 5), (7, 0)])), whole, "the part is lost");
    let mut at = cut_on(8, [9, 20, 0, 0]);
    avoid_split_commits(
        open.iter(),
        (&cut_on(8, [0, 10, 0, 0]), &logs_of_second(&[(8, 0)])),
        &mut at,
    );
    assert_eq!(at, held, "what is published on another branch has begun nothing");
}

#[test]
fn a_commit_names_each_vbucket_once_and_some_mutations_of_each() {
    let part = |vbucket, after, end| PushedPart {
        vbucket: VbucketId(vbucket),
        after: Seqno(after),
        end: Position { vbuuid: BRANCH, seqno: Seqno(end) },
    };
    let made = |number, parts| PushedCommit::new(ProducerTransactionId(number), parts);
    let whole = made(1, vec![part(3, 0, 1), part(1, 4, 6)]).unwrap();
    assert_eq!(whole.part_of(VbucketId(1)).map(PushedPart::mutations), Some(2));
    assert_eq!(whole.part_of(VbucketId(2)), None);
    for (number, parts, word) in [
        (0, vec![part(0, 0, 1)], "above 0"),
        (1, vec![], "no vbucket"),
        (1, vec![part(0, 0, 1), part(1, 0, 1), part(0, 1, 2)], "vbucket 0 twice"),
        (1, vec![part(0, 5, 5)], "no mutations of vbucket 0"),
        (1, vec![part(0, 5, 4)], "no mutations of vbucket 0"),
    ] {
        let error = made(number, parts).expect_err(word);
        assert!(error.message.contains(word), "{error}");
    }
}

/// A history: plain mutations and commits of producers, by vbucket, each vbucket without gaps.
fn history() -> impl Strategy<Value = (Vec<PushedCommit>, [u64; 4])> {
    let step = (proptest::bool::ANY, proptest::collection::btree_map(0..VBUCKETS, 1_u64..4, 1..4));
    proptest::collection::vec(step, 1..12).prop_map(|steps| {
        let (mut ends, mut commits) = ([0; 4], Vec::new());
        for (n, (is_commit, of_each)) in steps.into_iter().enumerate() {
            let parts: Vec<_> = of_each
                .into_iter()
                .map(|(vbucket, count)| {
                    let end = &mut ends[usize::from(vbucket)];
                    *end += count;
                    (vbucket, *end - count, *end)
                })
                .collect();
            if is_commit {
                commits.push(commit(n as u64 + 1, &parts));
            }
        }
        (commits, ends)
    })
}

/// Moves a cut back in repeated passes over all commits, until it splits none.
fn fallen_in_rounds(commits: &[PushedCommit], published: &Cut, from: [u64; 4]) -> Cut {
    let (mut at, logs) = (cut(from), one_branch());
    while let Some(split) =
        commits.iter().find(|of| !of.is_begun_in(published, &logs) && of.is_split_by(&at, &logs))
    {
        for part in &split.parts {
            move_cut_before(part, (published, &logs), &mut at);
        }
    }
    at
}

/// Neighbouring commits are in opposite orders in the two vbuckets, so each commit is split once
/// the next one is removed. Repeated passes over all commits would compare each pair.
#[test]
fn a_long_chain_of_commits_falls_as_a_whole() {
    let link = |n: u64| match (n, n % 2) {
        (1, _) => commit(n, &[(0, 0, 1), (1, 1, 2)]),
        (_, 0) => commit(n, &[(0, n, n + 1), (1, n - 2, n - 1)]),
        _ => commit(n, &[(0, n - 2, n - 1), (1, n, n + 1)]),
    };
    let most = OPEN_PARTS_MAX as u64 / 2 - 1;
    let chain: Vec<_> = (1..=most).map(link).collect();
    assert_eq!(fallen(&chain, &one_branch(), [most, most, 0, 0]), cut([0; 4]));
    assert_eq!(
        fallen(&chain, &one_branch(), [most, most + 1, 0, 0]).get(VbucketId(0)).seqno.0,
        most
    );
}

proptest! {
    #[test]
    fn one_pass_over_the_parts_comes_to_the_same_as_rounds(
        (commits, ends) in history(),
        shares in proptest::array::uniform4((0_u64..=16, 0_u64..=4)),
    ) {
        let share = |v: usize, of: u64| ends[v] * of / 16;
        let published = [0, 1, 2, 3].map(|v| share(v, shares[v].1));
        let from = [0, 1, 2, 3].map(|v| share(v, shares[v].0).max(published[v]));
        let published = cut(published);
        let mut at = cut(from);
        avoid_split_commits(commits.iter(), (&published, &one_branch()), &mut at);
        prop_assert_eq!(at, fallen_in_rounds(&commits, &published, from));
    }

    /// The result splits no commit, and no larger cut that ends at borders of commits would be
    /// unsplit.
    #[test]
    fn the_cut_that_is_left_is_the_largest_that_splits_nothing(
        (commits, ends) in history(),
        shares in proptest::array::uniform4(0_u64..=16),
    ) {
        // Each owner has some prefix of its vbucket: up to a border between two groups.
        let from: Vec<u64> = (0..4).map(|v| {
            let wanted = ends[v] * shares[v] / 16;
            let inside = commits.iter().filter_map(|c| c.part_of(VbucketId(v as u16)));
            let inside = inside.filter(|p| p.after.0 < wanted && wanted < p.end.seqno.0);
            inside.map(|p| p.after.0).next().unwrap_or(wanted)
        }).collect();
        let from = [from[0], from[1], from[2], from[3]];
        let at = fallen(&commits, &one_branch(), from);
        let logs = one_branch();
        let has = |cut: &Cut, part: &PushedPart| part.is_in(cut, &logs);
        let has_all = |cut: &Cut, commit: &PushedCommit| commit.parts.iter().all(|part| has(cut, part));
        let is_whole = |cut: &Cut| commits.iter().all(|c| {
            let first = has(cut, &c.parts[0]);
            c.parts.iter().all(|part| has(cut, part) == first)
        });
        prop_assert!(is_whole(&at), "{at:?}");
        for commit in &commits {
            // A commit that is included at first is removed only after one that was split.
            let is_lost = !has_all(&at, commit) && has_all(&cut(from), commit);
            let is_behind = |part: &PushedPart| commits.iter().any(|other| {
                !has_all(&at, other) && other.part_of(part.vbucket).is_some_and(|o| o.end.seqno <= part.after)
            });
            prop_assert!(!is_lost || commit.parts.iter().any(is_behind));
        }
    }

    /// A smaller cut is never reduced further than a larger one, so the leader checks only its
    /// newest cut.
    #[test]
    fn a_smaller_cut_never_falls_to_more(
        (commits, ends) in history(),
        shares in proptest::array::uniform4((0_u64..=16, 0_u64..=16)),
        published in proptest::array::uniform4(0_u64..=4),
    ) {
        let published = [0, 1, 2, 3].map(|v: usize| ends[v] * published[v] / 16);
        let share = |v: usize, of: u64| (ends[v] * of / 16).max(published[v]);
        let larger = [0, 1, 2, 3].map(|v| share(v, shares[v].0.max(shares[v].1)));
        let smaller = [0, 1, 2, 3].map(|v| share(v, shares[v].0));
        let fallen = |from| {
            let mut at = cut(from);
            avoid_split_commits(commits.iter(), (&cut(published), &one_branch()), &mut at);
            at
        };
        prop_assert!(fallen(larger).reaches(&fallen(smaller)));
    }
}
