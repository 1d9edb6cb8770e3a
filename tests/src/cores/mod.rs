//! The simulation of the cores, which executes all decisions of the cluster without I/O, in one
//! thread, from one seed, about a thousand times faster than real time.
//!
//! Parts of the product: three Raft cores with their logs, their StateContexts, the leader's memory
//! and plans, the indexers' mutation queue and follower policy, the router's choice of epochs and
//! its virtual scans. Models replace the parts with I/O: a source (`source`), a naive store
//! (`store`), the links. The judge (`judge`) shares no code with the product; it has the whole
//! history (`history`), including lost mutations.
//!
//! Checked at all times:
//! - one leader for each term, one command at each position of the log, a growing `cas`; each
//!   request is executed once;
//! - epoch numbers are unique, each epoch follows its parent, and none splits a surviving
//!   statement;
//! - each epoch that an indexer applies, returns to, builds or receives by a move shows on each
//!   slice exactly the history; so a rollback removes exactly the lost mutations and restores the
//!   values that they had overwritten;
//! - no damaged copy of a move becomes live;
//! - the first epoch after a rollback has all surviving mutations, and no new scan chooses an epoch
//!   that may lack some; a scan shows each entry of its epoch once, even if its slices move;
//! - the horizon passes no lease known to the leader, no epoch that new scans may choose, and none
//!   that an index needs to serve; a rollback point that was given up never returns;
//! - after the faults, all indexers reach the newest epoch, and rollbacks and builds end.
//!
//! | file | contents |
//! |---|---|
//! | `world` | the event loop |
//! | `members` | the coordinators and the leader's loop |
//! | `client` | DDL and moves |
//! | `source`, `streams` | the source, and the messages between it and the indexers |
//! | `indexer`, `store` | an indexer |
//! | `router` | a router and its scans |
//! | `faults`, `damage` | the faults; damaged copies |

mod client;
mod damage;
mod faults;
mod history;
mod indexer;
mod judge;
mod members;
mod router;
mod source;
mod store;
mod streams;
mod world;

use crate::sim::Summary;
use world::World;

/// The time limit after the faults until the cluster must be whole, in milliseconds.
const HEALS_WITHIN_MS: u64 = 25_000;
/// The interval between two checks whether the cluster is whole, in milliseconds.
const LOOK_EVERY_MS: u64 = 250;

/// The result of a run.
pub struct Outcome {
    /// The summary of the run.
    pub summary: Summary,
    /// A hash of all events, equal in every run of a seed.
    pub trace: u64,
}

/// Runs a seed: `seconds` simulated seconds with faults, then without until the cluster is whole.
pub fn run(seed: u64, seconds: u64) -> Outcome {
    let mut world = World::new(seed);
    world.run_until(seconds * 1_000);
    world.end_faults();
    let end_ms = world.now_ms + HEALS_WITHIN_MS;
    loop {
        let at_ms = world.now_ms + LOOK_EVERY_MS;
        world.run_until(at_ms);
        let left = world.not_healed();
        match left {
            _ if !world.judge.violations.is_empty() => break,
            None => break,
            Some(what) if world.now_ms >= end_ms => {
                world.judge.wrong(format!("not healed: {what}"));
            }
            Some(_) => {}
        }
    }
    Outcome { trace: world.trace, summary: summary(world) }
}

fn summary(world: World) -> Summary {
    let World { judge, router, client, source, damage, mut faults, .. } = world;
    faults.insert("damaged_copy", damage.count());
    Summary {
        seed: world.seed,
        simulated_ms: world.now_ms,
        events: world.events,
        epochs: judge.marks.len() as u64,
        writes: source.history.statements.len() as u64,
        scans: router.judged,
        scans_refused: router.refused,
        entries: judge.entries,
        ddl: client.answered,
        moves_asked: client.moves,
        rollbacks: judge.rollbacks.len() as u64,
        copies_compared: judge.compared,
        terms: judge.members.leaders.len() as u64,
        committed: judge.members.applied.len() as u64,
        faults: faults.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect(),
        violations: judge.violations,
        ..Summary::default()
    }
}
