//! Tests that the traffic of the coordinators grows no faster than the cluster, and that an epoch
//! reaches all indexers soon. `docs/growth.md` has the figures of larger clusters, which
//! `simulate control-plane` measures.

use tests::growth::counts::{Kind, Party};
use tests::growth::figures::{Figures, Processor};
use tests::growth::run;
use tests::growth::scale::Scale;

/// The limit of messages per second of an idle cluster without its indexers: Raft, three
/// coordinators, a projector and a router.
const IDLE_MESSAGES: f64 = 250.0;
/// The limit of messages per second of an idle indexer: a heartbeat and its answer, sometimes a
/// second heartbeat.
const IDLE_MESSAGES_EACH: f64 = 2.5;
/// The time limit of the publication of an epoch, in ms: a tick, the previous promotion, and a
/// round to the followers, at most 2 ms each way.
const PUBLISHED_MS_MAX: u64 = 50;
/// The time limit for an epoch from the leader to a projector and on to an indexer, in ms.
const EVERYWHERE_MS_MAX: u64 = 6;

fn figures(indexers: u64) -> Figures {
    let (buckets, vbuckets) = (4, 64);
    let slices = Scale::slices_for(indexers, buckets);
    let scale = Scale { indexers, buckets, vbuckets, slices, rate: 500, seconds: 3, seed: 7 };
    run(scale).expect("a run")
}

fn check(figures: &Figures) {
    let indexers = figures.scale.indexers as f64;
    let idle = figures.idle.through_leader();
    let idle_max = IDLE_MESSAGES + IDLE_MESSAGES_EACH * indexers;
    assert!(idle.messages <= idle_max, "{} idle messages/s\n{figures}", idle.messages);
    let sent = figures.load.per_second(|f| (f.from, f.to) == (Party::Leader, Party::Indexer));
    assert!(sent.messages <= 1.5 * indexers, "an epoch is sent by projectors only\n{figures}");
    assert_eq!(figures.load.of_kind(Kind::Catalog).messages, 0.0, "nothing changes it\n{figures}");
    let (epochs, (asked, missed)) = (figures.epochs, figures.asked);
    assert!(epochs.until_everywhere.count > 100, "about 50 epochs in a second\n{figures}");
    assert!(epochs.until_published.longest_ms <= PUBLISHED_MS_MAX, "late\n{figures}");
    assert!(epochs.until_everywhere.longest_ms <= EVERYWHERE_MS_MAX, "late\n{figures}");
    assert!(asked > 10 && missed == 0, "the router gets its epochs\n{figures}");
}

#[test]
fn the_traffic_of_the_leader_grows_no_faster_than_the_cluster() {
    let (small, large) = (figures(10), figures(100));
    check(&small);
    check(&large);
    let pairs = [(&small.idle, &large.idle), (&small.load, &large.load)];
    for (of_small, of_large) in pairs {
        let (before, after) = (of_small.through_leader(), of_large.through_leader());
        assert!(after.bytes <= 10.0 * before.bytes, "{small}\n{large}");
        assert!(after.messages <= 10.0 * before.messages, "{small}\n{large}");
    }
}

#[test]
fn a_seed_has_the_same_figures_in_each_run() {
    let of_seed = || Figures { processor: Processor::default(), ..figures(10) };
    assert_eq!(of_seed(), of_seed());
}
