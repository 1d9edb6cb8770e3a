use proto::model::ids::{Generation, IndexId, NodeId, SliceNo};
use proto::model::index::IndexState;
use proto::rpc::command::{
    BuildGeneration, CancelBuild, Command, CreateIndex, DropBucket, DropGeneration, DropIndex,
    EndMove, IndexReady, Proposal, RenameIndex, SetReplicas,
};

use super::*;
use crate::state::indexes::record::IndexRecord;
use crate::state::tests::{advance, done, planned, refused, serving, start, with_bucket};

const INDEX: IndexId = IndexId(1);

fn generation(number: u32) -> LocalIndexId {
    LocalIndexId { index: INDEX, generation: Generation(number) }
}

/// Returns the command that changes the number of slices of the index.
fn with_slices(state: &StateContext, slices: u16) -> Proposal {
    let info = &state.indexes.named()[&INDEX].info;
    let spec = Box::new(IndexSpec { slices, ..(*info.spec).clone() });
    Proposal::from(BuildGeneration { index: info.id, spec }).expecting_unchanged([&**info])
}

fn ready(number: u32) -> Command {
    Command::IndexReady(IndexReady { index: INDEX, generation: Generation(number) })
}

/// Returns a state in which generation 1 serves and generation 2, of eight slices, is being built.
fn building() -> StateContext {
    let mut state = serving(1);
    let command = with_slices(&state, 8);
    assert_eq!(done(&mut state, command), Outcome::Generation(generation(2)));
    state
}

/// Returns a state in which generation 2 serves and generation 1 is retired.
fn switched() -> StateContext {
    let mut state = building();
    done(&mut state, ready(2));
    state
}

fn states(state: &StateContext) -> Vec<(u32, IndexState)> {
    let told = |record: &IndexRecord| (record.info.generation.0, record.info.state);
    state.indexes().map(told).collect()
}

#[test]
fn a_new_generation_is_built_beside_the_one_that_serves() {
    let state = building();
    assert_eq!(states(&state), [(1, IndexState::Maintenance), (2, IndexState::Backfill)]);
    let catalog = state.catalog();
    assert_eq!(catalog.index("i").unwrap().generation, Generation(1));
    let next = catalog.next_generation(INDEX).unwrap();
    assert_eq!((next.generation, next.topology.placement.len()), (Generation(2), 8));
    assert_eq!(catalog.local_indexes().count(), 2);
    assert!(
        !catalog.is_generation_dropped(generation(1))
            && !catalog.is_generation_dropped(generation(2))
    );
    assert!(!catalog.is_generation_dropped(generation(3)), "it may be begun later");
}

#[test]
fn one_command_switches_and_the_old_generation_retires() {
    let mut state = switched();
    assert_eq!(states(&state), [(2, IndexState::Maintenance), (1, IndexState::Retired)]);
    let catalog = state.catalog();
    assert_eq!(catalog.index("i").unwrap().spec.slices, 8);
    assert_eq!(catalog.local_index(generation(1)).unwrap().spec.slices, 4);
    // A leader that has not seen the outcome proposes it again.
    assert_eq!(done(&mut state, ready(2)), Outcome::Done);
    assert_eq!(states(&state), [(2, IndexState::Maintenance), (1, IndexState::Retired)]);
}

#[test]
fn a_retired_generation_goes_and_no_other() {
    let mut state = switched();
    let revision = state.indexes.named()[&INDEX].info.revision;
    for number in [2, 3] {
        done(&mut state, DropGeneration { generation: generation(number) });
        assert_eq!(states(&state).len(), 2, "generation {number} is not retired");
    }
    done(&mut state, DropGeneration { generation: generation(1) });
    assert_eq!(states(&state), [(2, IndexState::Maintenance)]);
    assert!(state.catalog().is_generation_dropped(generation(1)));
    assert!(
        state.indexes.named()[&INDEX].info.revision > revision,
        "nodes can tell an older catalog"
    );
}

#[test]
fn a_cancelled_generation_leaves_what_serves_and_its_number_is_not_given_again() {
    let mut state = building();
    done(&mut state, CancelBuild { index: IndexId(1) });
    assert_eq!(states(&state), [(1, IndexState::Maintenance)]);
    assert!(state.catalog().is_generation_dropped(generation(2)));
    done(&mut state, ready(2));
    assert_eq!(states(&state), [(1, IndexState::Maintenance)], "it was cancelled before");
    let command = Command::CancelBuild(CancelBuild { index: IndexId(1) });
    assert_eq!(refused(&mut state, command), ErrorCode::WrongState);
    let command = with_slices(&state, 8);
    assert_eq!(done(&mut state, command), Outcome::Generation(generation(3)));
}

#[test]
fn only_one_generation_is_built_at_a_time_and_only_for_the_definition_that_was_read() {
    let mut state = building();
    let command = with_slices(&state, 2);
    assert_eq!(refused(&mut state, command), ErrorCode::WrongState);
    let late = with_slices(&state, 2);
    done(&mut state, ready(2));
    assert_eq!(refused(&mut state, late), ErrorCode::Changed, "of a generation before");
    let late = with_slices(&state, 2);
    done(&mut state, SetReplicas { index: IndexId(1), replicas: 0 });
    assert_eq!(refused(&mut state, late), ErrorCode::Changed, "of a definition before");
}

#[test]
fn an_index_has_a_bounded_number_of_generations() {
    let mut state = switched();
    for number in 3..=4 {
        let command = with_slices(&state, 4);
        done(&mut state, command);
        done(&mut state, ready(number));
    }
    let command = with_slices(&state, 4);
    assert_eq!(refused(&mut state, command), ErrorCode::WrongState);
    done(&mut state, DropGeneration { generation: generation(1) });
    let command = with_slices(&state, 4);
    assert_eq!(done(&mut state, command), Outcome::Generation(generation(5)));
}

#[test]
fn settings_concern_what_serves_and_what_is_built() {
    let mut state = building();
    done(&mut state, SetReplicas { index: IndexId(1), replicas: 0 });
    assert!(state.indexes().all(|record| record.info.spec.replicas == 0));
    done(&mut state, ready(2));
    done(&mut state, SetReplicas { index: IndexId(1), replicas: 2 });
    assert_eq!(state.indexes.record(generation(1)).unwrap().info.spec.replicas, 0, "it is retired");
}

#[test]
fn a_drop_takes_all_generations() {
    for command in [
        Command::DropIndex(DropIndex { index: IndexId(1) }),
        Command::DropBucket(DropBucket { bucket: BucketId(1), restrict: false }),
    ] {
        let mut state = switched();
        let next = with_slices(&state, 2);
        done(&mut state, next);
        done(&mut state, command);
        assert_eq!(states(&state), []);
        let catalog = state.catalog();
        assert!((1..=3).all(|number| catalog.is_generation_dropped(generation(number))));
    }
}

#[test]
fn an_index_that_was_not_built_is_declared_anew() {
    let mut state = with_bucket();
    let spec = crate::state::tests::spec("i");
    done(
        &mut state,
        CreateIndex { bucket: BucketId(1), spec, defer_build: true, if_not_exists: false },
    );
    let command = with_slices(&state, 8);
    assert_eq!(done(&mut state, command), Outcome::Generation(generation(2)));
    assert_eq!(states(&state), [(2, IndexState::Pending)]);
    assert_eq!(state.indexes.named()[&INDEX].info.topology.placement.len(), 8);
}

#[test]
fn an_unfinished_move_ends_with_the_switch_and_a_finished_one_stays_until_its_source_may_go() {
    let mut state = building();
    let ids = start(&mut state, &[planned(0, 20, 22), planned(1, 21, 23)]);
    advance(&mut state, ids[0], proto::model::moves::MoveStage::Done);
    done(&mut state, ready(2));
    let old = &state.indexes.record(generation(1)).unwrap().info;
    assert_eq!(old.moves.iter().map(|m| m.id).collect::<Vec<_>>(), [ids[0]]);
    assert!(
        old.topology.hosts(NodeId(22), SliceNo(0)) && !old.topology.hosts(NodeId(23), SliceNo(1))
    );
    done(&mut state, EndMove { index: INDEX, id: ids[0], undone: None });
    assert!(state.indexes.record(generation(1)).unwrap().info.moves.is_empty());
}

#[test]
fn a_new_name_is_that_of_all_generations_but_not_during_a_build() {
    let rename = |state: &StateContext, to: &str| {
        let info = &state.indexes.named()[&INDEX].info;
        let (to, sql) = (to.into(), "CREATE INDEX …".into());
        Proposal::from(RenameIndex { index: info.id, to, sql }).expecting_unchanged([&**info])
    };
    let mut state = building();
    let during = rename(&state, "j");
    assert_eq!(refused(&mut state, during.clone()), ErrorCode::WrongState);
    done(&mut state, ready(2));
    assert_eq!(refused(&mut state, during), ErrorCode::Changed, "of a generation before");
    for taken in ["b", "i"] {
        let command = rename(&state, taken);
        assert_eq!(refused(&mut state, command), ErrorCode::Exists, "{taken}");
    }
    let again = rename(&state, "k");
    let command = rename(&state, "j");
    done(&mut state, command);
    assert!(state.indexes().all(|record| record.info.spec.name == "j"));
    assert_eq!(state.catalog().index("j").unwrap().spec.sql, "CREATE INDEX …");
    assert_eq!(refused(&mut state, again), ErrorCode::Changed, "it has another name");
}

#[test]
fn nothing_switches_while_the_bucket_is_rolled_back() {
    let mut state = building();
    let bucket = state.indexes.named()[&INDEX].info.bucket;
    state.carry_out(&Consequence::RollbackBegun { bucket, logs: None, failover: None });
    done(&mut state, ready(2));
    assert_eq!(states(&state), [(1, IndexState::Maintenance), (2, IndexState::Backfill)]);
}

#[test]
fn a_snapshot_has_all_generations() {
    let state = switched();
    assert_eq!(StateContext::from_bytes(&state.to_bytes().unwrap()).unwrap(), state);
}
