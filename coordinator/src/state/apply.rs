//! Applies commands one by one.

use std::sync::Arc;

use proto::model::bucket::SourceKind;
use proto::model::data_set::DataSet;
use proto::model::identity::UniqueId;
use proto::model::ids::{BucketId, Generation, NodeId};
use proto::plant::{self, Plant};
use proto::rpc::command::{Command, CommandRequest, Outcome};
use proto::{Error, ErrorCode};

use super::context::StateContext;
use super::copies::check_copied;
use super::effect::{Change, Effect};
use super::limits::beginning;
use super::nodes::Removal;

/// The length limit of a kept refusal and of its hint. A refusal may quote a name of any length.
const REFUSAL_BYTES_MAX: usize = 1 << 10;

/// The most time that may pass between two commands.
const STEP_MS_MAX: u64 = 10_000;

impl StateContext {
    /// Applies a command.
    pub fn apply(
        &mut self,
        position: u64,
        unix_ms: u64,
        request: &CommandRequest,
    ) -> (Outcome, Vec<Effect>) {
        self.position = position;
        let passed_ms = unix_ms.saturating_sub(std::mem::replace(&mut self.told_ms, unix_ms));
        self.steady_ms += passed_ms.min(STEP_MS_MAX);
        // A new leader's clock may be behind the clock of the old one.
        self.unix_ms = self.unix_ms.max(unix_ms);
        if let Some(id) = request.request
            && let Some(answer) = self.requests.answer(id)
            && !plant::is(Plant::DoneTwice)
        {
            return (answer, Vec::new());
        }
        let (outcome, effects) = match self.run(&request.command, &[]) {
            Ok((outcome, effects)) => (outcome, effects),
            Err(error) => (Outcome::Refused(shortened(error)), Vec::new()),
        };
        if !effects.is_empty() {
            self.cas += 1;
        }
        if effects.contains(&Effect::CatalogChanged) {
            self.catalog_cas = self.cas;
            self.forget_topologies();
        }
        if effects.contains(&Effect::UsersChanged) {
            Arc::make_mut(&mut self.users).cas = self.cas;
        }
        let broken = || if effects.is_empty() { Ok(()) } else { self.check() };
        debug_assert_eq!(broken(), Ok(()), "after {:?}", request.command);
        if let Some(id) = request.request {
            self.requests.keep(id, position, outcome.clone());
        }
        (outcome, effects)
    }

    /// Runs a command. It either changes the state and returns an effect, or leaves the state as it was. Of the `silent` indexers
    /// the leader has heard nothing for some seconds.
    fn run(&mut self, command: &Command, silent: &[NodeId]) -> Change {
        match command {
            Command::CreateBucket { .. }
            | Command::CreateIndex { .. }
            | Command::CreateCopied { .. }
            | Command::BuildGeneration { .. }
            | Command::CreateDataSet { .. }
            | Command::LoadVersion { .. }
            | Command::AllowEmpty { .. } => self.create(command, None, silent),
            Command::HandOver { bucket, vbuckets, to } => self.hand_over(bucket, vbuckets, *to),
            Command::HandedOver { bucket, number } => self.handed_over(*bucket, *number),
            Command::CancelHandOver { bucket } => self.cancel_hand_over(bucket),
            Command::DropBucket { name, if_exists, restrict } => {
                self.drop_bucket(name, *if_exists, *restrict)
            }
            Command::BuildIndexes { bucket, names } => self.build_on(bucket, names, silent),
            Command::DropIndex { name, if_exists } => self.drop_index(name, *if_exists),
            Command::CancelBuild { name } => self.cancel_build(name),
            Command::DropGeneration(id) => self.drop_generation(*id),
            Command::RenameIndex { from, before, to, sql } => {
                self.rename_index(*from, before, (to, sql))
            }
            Command::RegisterNode(node) => self.register_unproven(node),
            Command::Join(request) => self.join(request),
            Command::IndexReady { index, generation } => self.index_ready(*index, *generation),
            Command::StartMoves(moves) => self.start_moves(moves),
            Command::AdvanceMove { index, id, stage } => self.advance_move(*index, *id, *stage),
            Command::EndMove { index, id, undone } => self.end_move(*index, *id, undone.as_deref()),
            Command::CancelMoves { index } => self.cancel_moves(index.as_deref()),
            Command::DrainNode { node, drain } => self.drain_node(*node, *drain, silent),
            Command::RemoveNode { node } => self.remove_node(*node, Removal::Kept, silent),
            Command::RemoveNodeForced { node } => self.remove_node(*node, Removal::Forced, silent),
            Command::PlaceLost { lost, lost_to_builds } => {
                self.place_lost(lost, lost_to_builds, silent)
            }
            Command::Avoiding { silent, command } => match **command {
                Command::Avoiding { .. } => {
                    Err(Error::internal("a command names the silent nodes twice"))
                }
                _ => self.run(command, silent),
            },
            Command::SetVersionIdle { bucket, idle_ms } => self.set_version_idle(bucket, *idle_ms),
            Command::CancelVersion { bucket, version } => self.cancel_version(bucket, version),
            Command::PartitionsLoaded { bucket, node, partitions, read } => {
                self.partitions_loaded(*bucket, *node, partitions, *read)
            }
            Command::PartitionsLost { bucket, node, partitions } => {
                self.partitions_lost(*bucket, *node, partitions)
            }
            Command::VersionFailed { bucket, node, error } => {
                self.version_failed(*bucket, *node, error)
            }
            Command::OwnPartitions { bucket, owners } => self.own_partitions(*bucket, owners),
            Command::BuildVersion { from, bucket } => self.build_version(*from, *bucket, silent),
            Command::SwitchVersion { data_set, version } => {
                self.switch_version(*data_set, *version)
            }
            Command::DropVersion { data_set, version } => self.drop_version(*data_set, *version),
            Command::SetSeparateIncludedColumns { index, separate } => {
                self.set_separate_included_columns(index, *separate)
            }
            Command::SetSliceBytesMax { index, bytes } => self.set_slice_bytes_max(index, *bytes),
            Command::GrowIndex { from, slices } => self.grow_index(*from, *slices, silent),
            Command::Users(command) => self.change_users(command),
            Command::On { bucket, command } => match self.check_names(*bucket, command) {
                Ok(()) => self.run(command, silent),
                Err(_) if may_lack(command) => Ok((Outcome::Done, Vec::new())),
                Err(other) => Err(other),
            },
            Command::Of { user, command } => {
                let found = command.alters_user().and_then(|name| self.users.same(name, *user));
                let gone = || Error::new(ErrorCode::UnknownUser, "the user was dropped");
                found.ok_or_else(gone)?;
                self.run(command, silent)
            }
            Command::SplitSlice { from, slice, at } => {
                self.split_slice(*from, (*slice, at), silent)
            }
            Command::SetReplicas { index, replicas } => self.set_replicas(index, *replicas),
            Command::PromoteEpochs(promotions) => self.promote_epochs(promotions, &[]),
            Command::PromoteJoined { promotions, joined } => {
                self.promote_epochs(promotions, joined)
            }
            Command::Rollback { bucket, step } => self.rollback(*bucket, step),
            Command::SkipEpochs(known) => self.skip_epochs(known),
            Command::Create { unique, command } => self.create(command, Some(*unique), silent),
            Command::OpenSource { bucket, projector, history, accepted } => {
                self.open_source((*bucket, *projector), history, *accepted)
            }
            Command::SetCopies { bucket, copies } => self.set_copies(bucket, *copies),
            Command::MoveBucket { bucket, to } => self.move_bucket(bucket, *to),
            Command::ChangeCopies { bucket, revision, change } => {
                self.change_copies(*bucket, *revision, *change)
            }
        }
    }
}

impl StateContext {
    /// Creates a bucket, an index or a generation, with its random id unless the command is of an earlier build.
    fn create(&mut self, command: &Command, unique: Option<UniqueId>, silent: &[NodeId]) -> Change {
        match command {
            Command::CreateBucket { name, vbuckets, source, projectors, if_not_exists } => {
                if *source == SourceKind::Files {
                    return Err(Error::internal("a data set has its own command"));
                }
                let bucket = (&**name, *vbuckets, *source);
                self.with_id(unique, |state| {
                    state.create_bucket(bucket, *projectors, *if_not_exists)
                })
            }
            Command::CreateDataSet { name, partitions, replication, idle_ms, if_not_exists } => {
                let set = DataSet::new(*partitions, *replication, *idle_ms);
                self.with_id(unique, |state| state.create_data_set(name, set, *if_not_exists))
            }
            Command::LoadVersion { bucket, version, files } => {
                self.with_id(unique, |state| state.load_version((bucket, version), files, silent))
            }
            Command::AllowEmpty { command } => match &**command {
                Command::LoadVersion { .. } => {
                    let made = self.create(command, unique, silent)?;
                    self.empty_allowed.insert(BucketId(self.last_bucket));
                    Ok(made)
                }
                _ => Err(Error::internal("only a version is loaded from files")),
            },
            Command::CreateCopied { copies, command } => {
                check_copied(*copies, command)?;
                let newest = self.last_bucket;
                let made = self.create(command, unique, silent)?;
                if self.last_bucket > newest {
                    self.wants_copies(BucketId(self.last_bucket), *copies);
                }
                Ok(made)
            }
            Command::CreateIndex { spec, defer_build, if_not_exists } => {
                let generation = unique.map_or(Generation(1), UniqueId::first_generation);
                self.create_index(spec, generation, (*defer_build, *if_not_exists), silent)
            }
            Command::BuildGeneration { from, before, spec } => {
                self.build_generation(*from, (before, spec), unique, silent)
            }
            _ => Err(Error::internal("only a bucket, a version or an index is created")),
        }
    }

    /// Gives the bucket that a command makes its random id.
    fn with_id(
        &mut self,
        unique: Option<UniqueId>,
        create: impl FnOnce(&mut Self) -> Change,
    ) -> Change {
        let newest = self.last_bucket;
        let made = create(self)?;
        if self.last_bucket > newest {
            self.bucket_ids.extend(unique.map(|unique| (BucketId(self.last_bucket), unique)));
        }
        Ok(made)
    }
}

/// True if nothing is to be done where the name means nothing.
fn may_lack(command: &Command) -> bool {
    matches!(
        command,
        Command::DropBucket { if_exists: true, .. } | Command::DropIndex { if_exists: true, .. }
    )
}

/// Cuts the texts of a refusal, which is kept for retries.
fn shortened(mut error: Error) -> Error {
    for text in std::iter::once(&mut error.message).chain(&mut error.hint) {
        text.truncate(beginning(text, REFUSAL_BYTES_MAX).len());
    }
    error
}
