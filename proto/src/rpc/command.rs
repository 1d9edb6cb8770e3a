//! The replicated commands, the only changes of the StateContext. Every member applies them in the order of the
//! coordinators' log. The outcome of a request is part of the replicated state, so that a client that repeats a request
//! receives the first outcome.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::model::bucket::SourceKind;
use crate::model::copies::{Copies, CopiesChange};
use crate::model::cut::Position;
use crate::model::data_set::{Files, FilesRead, PartitionContent};
use crate::model::history::SourceHistory;
use crate::model::identity::{ClusterId, JoinRequest, UniqueId};
use crate::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, MoveId, NodeId, SliceNo, TokenId, UserId,
    VbucketId,
};
use crate::model::index::IndexSpec;
use crate::model::moves::{MoveStage, PlannedMove};
use crate::model::node::NodeInfo;
use crate::model::rollback::{NewestKnown, RollbackStep};
use crate::model::users::{GrantOn, UserCommand};
use crate::nesting::recursive;

/// Identifies one request of one client, so that a repeated request is not executed twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId {
    /// The client, a random number.
    pub client: u64,
    /// The number of the request, counted by the client.
    pub sequence: u64,
}

/// A command with the identity of its request; commands of the leader itself have none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandRequest {
    /// The identity of the request, for retries.
    pub request: Option<RequestId>,
    /// The command.
    pub command: Command,
}

/// A change of the StateContext. Some commands have another one inside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum Command {
    /// CREATE BUCKET. The new bucket has epoch 1 from the start, with a cut at the beginning of its
    /// history, so that an empty bucket can be scanned. Refused (`Unavailable`) while no projector
    /// is registered; the projectors with the fewest buckets get it.
    CreateBucket {
        /// Its name.
        name: String,
        /// The number of its vbuckets.
        vbuckets: u16,
        /// The kind of its source.
        source: SourceKind,
        /// The number of projectors that share its vbuckets. Only a pushed bucket may have several, since its mutations are
        /// independent; the statements of an embedded bucket are atomic because one process numbers them.
        projectors: u16,
        /// Not an error if there is one of that name.
        if_not_exists: bool,
    },
    /// ALTER BUCKET … MOVE VBUCKET …: transfers vbuckets of a pushed bucket to a projector. Vbuckets that it owns already are
    /// left out; a vbucket that is being transferred elsewhere is refused.
    HandOver {
        /// The bucket's name.
        bucket: String,
        /// The vbuckets.
        vbuckets: Vec<VbucketId>,
        /// The projector that receives them.
        to: NodeId,
    },
    /// The target of a hand-over has the whole vbucket and becomes its owner. Sent by the target; refused if the hand-over was
    /// cancelled.
    HandedOver {
        /// The bucket.
        bucket: BucketId,
        /// [`HandOver::number`](crate::model::assignment::HandOver::number).
        number: u64,
    },
    /// ALTER BUCKET … CANCEL MOVES: cancels all transfers of a bucket's vbuckets.
    CancelHandOver {
        /// The bucket's name.
        bucket: String,
    },
    /// DROP BUCKET, with its indexes.
    DropBucket {
        /// Its name.
        name: String,
        /// True if its absence is no error.
        if_exists: bool,
        /// RESTRICT: refused while the bucket has indexes.
        restrict: bool,
    },
    /// CREATE INDEX. Slices are placed at once, by a pure planner over the registered indexers
    /// (replicas on different nodes and zones); if there are too few, the error names the available ones.
    CreateIndex {
        /// The definition.
        spec: IndexSpec,
        /// True to leave the index `pending`.
        defer_build: bool,
        /// Not an error if there is one of that name.
        if_not_exists: bool,
    },
    /// BUILD INDEX ON bucket (names): all or none.
    BuildIndexes {
        /// The bucket's name.
        bucket: String,
        /// The indexes' names.
        names: Vec<String>,
    },
    /// DROP INDEX.
    DropIndex {
        /// Its name.
        name: String,
        /// True if its absence is no error.
        if_exists: bool,
    },
    /// A process joins, or comes back with a new address. A node id that a process of another role
    /// has is refused.
    RegisterNode(NodeInfo),
    /// All slices of an index can be read: `backfill` → `maintenance`. From the leader.
    IndexReady {
        /// The index.
        index: IndexId,
        /// The generation that is ready.
        generation: Generation,
    },
    /// Moves of slices, each at `start` (or at once `done`, where a copy only goes). Those that cannot be
    /// made (any more) are left out; only if none is left is the command refused.
    StartMoves(Vec<PlannedMove>),
    /// The next stage of a move: `start` → `pending` → `catchup` → `done`, which changes the topology.
    /// From the leader; nothing happens if the move is not in the stage before.
    AdvanceMove {
        /// The index.
        index: IndexId,
        /// The move.
        id: MoveId,
        /// The stage that begins.
        stage: MoveStage,
    },
    /// A move ends: from `done` it is forgotten, from any other stage it is undone. From the leader.
    EndMove {
        /// The index.
        index: IndexId,
        /// The move.
        id: MoveId,
        /// Why it is undone; `None` ends one that is `done`, and only that.
        undone: Option<String>,
    },
    /// CANCEL REBALANCE: undoes the moves that are not `done`, of one index or of all.
    CancelMoves {
        /// The index's name.
        index: Option<String>,
    },
    /// DRAIN NODE: the indexer gets no more slices, and the leader moves away those that it has; or, with
    /// `drain` false, it gets slices again.
    DrainNode {
        /// The node.
        node: NodeId,
        /// Begin or stop?
        drain: bool,
    },
    /// REMOVE NODE: the process is no longer of the cluster. An indexer that is the only one with a slice
    /// is refused, see [`Command::RemoveNodeForced`]; its other copies are given up.
    RemoveNode {
        /// The node.
        node: NodeId,
    },
    /// ALTER INDEX … SET (replicas = n): the leader makes more copies, or gives some up.
    SetReplicas {
        /// The index's name.
        index: String,
        /// Copies besides the first.
        replicas: u8,
    },
    /// ALTER INDEX … SET (separate_included_columns = …): each node divides its fragments anew, without copying.
    SetSeparateIncludedColumns {
        /// The index's name.
        index: String,
        /// See `IndexSpec::separate_included_columns`.
        separate: bool,
    },
    /// One tick of stability timestamps, for all buckets that changed. From the leader.
    PromoteEpochs(Vec<Promotion>),
    /// The next step of a bucket's rollback, or the first. From the leader; a step that does not follow the
    /// stage at hand changes nothing.
    Rollback {
        /// The bucket.
        bucket: BucketId,
        /// The operation.
        step: RollbackStep,
    },
    /// A process with a data directory joins the cluster, or comes back. The first one founds it. Refused if its data is
    /// of another cluster, or if another process holds its number and is not silent.
    Join(Box<JoinRequest>),
    /// `--skip-epochs`: the coordinator was restored from an older copy, so other processes know numbers that this log will
    /// give again. All epochs, revisions and numbers of new objects continue above everything known, and all slices are
    /// rebuilt ([`crate::model::rollback`]).
    SkipEpochs(
        /// Set by the leader.
        NewestKnown,
    ),
    /// CREATE BUCKET or CREATE INDEX with the random id of the object. The leader makes it of the client's command, so that
    /// all members give the same id.
    Create {
        /// Its random id.
        unique: UniqueId,
        /// The client's command.
        command: Box<Command>,
    },
    /// A projector has begun, or begun again, with its vbuckets of an embedded bucket, and asks whether it may serve them.
    /// [`Outcome::Lacks`] if they lack something that the last epoch covers: nobody else has it, so the bucket is rolled back
    /// only when an operator has accepted the loss.
    OpenSource {
        /// The bucket.
        bucket: BucketId,
        /// The projector.
        projector: NodeId,
        /// The history of its vbuckets.
        history: Box<SourceHistory>,
        /// The epoch of an earlier [`Outcome::Lacks`] whose loss an operator has accepted.
        accepted: Option<Epoch>,
    },
    /// CREATE BUCKET … WITH (copies = n).
    CreateCopied {
        /// The number of copies.
        copies: u8,
        /// [`Command::CreateBucket`].
        command: Box<Command>,
    },
    /// ALTER BUCKET … SET (copies = n): the leading coordinator makes more copies of an embedded bucket, or gives some up.
    SetCopies {
        /// The bucket's name.
        bucket: String,
        /// The number of copies.
        copies: u8,
    },
    /// ALTER BUCKET … MOVE TO 'n': a projector gets a copy of an embedded bucket and then leads it.
    MoveBucket {
        /// The bucket's name.
        bucket: String,
        /// The projector.
        to: NodeId,
    },
    /// A change of a bucket's copies: compare-and-set. The answer is [`Outcome::Copies`], whether it was made or not.
    ChangeCopies {
        /// The bucket.
        bucket: BucketId,
        /// [`Copies::revision`] before the change.
        revision: u64,
        /// The change.
        change: CopiesChange,
    },
    /// [`Command::PromoteEpochs`] with commits that several buckets have in common.
    PromoteJoined {
        /// The timestamps.
        promotions: Vec<Promotion>,
        /// Sets of buckets: either each bucket of a set gets its timestamp, or none.
        joined: Vec<Vec<BucketId>>,
    },
    /// CANCEL BUILD: removes an index that is being built, or the generation that is being built to take its place. Refused (`WrongState`)
    /// if there is neither: what serves is never removed by it.
    CancelBuild {
        /// The index's name.
        name: String,
    },
    /// ALTER INDEX, REINDEX: begins a new generation of an index beside the one that serves, with another definition or the same. When it
    /// is complete, [`Command::IndexReady`] puts it in its place. In a [`Command::Create`], which gives it its number. Refused
    /// (`WrongState`) while another one is being built.
    BuildGeneration {
        /// The generation that the new definition was derived from. Refused (`WrongState`) if another one serves by now.
        from: LocalIndexId,
        /// The definition that it had then.
        before: Box<IndexSpec>,
        /// The new definition, of the same name and bucket.
        spec: Box<IndexSpec>,
    },
    /// A retired generation is no longer read. From the leader.
    DropGeneration(LocalIndexId),
    /// ALTER INDEX … RENAME TO: nothing is built.
    RenameIndex {
        /// The generation that serves. Refused (`WrongState`) if another one does by now.
        from: LocalIndexId,
        /// Its definition.
        before: Box<IndexSpec>,
        /// Its new name.
        to: String,
        /// The statement that declares it under its new name, for SHOW INDEXES.
        sql: String,
    },
    /// REMOVE NODE … FORCE: an indexer is removed although it is the only one with some slices. Each of them is given to another
    /// indexer, which rebuilds it from the source. The leader refuses it (`WrongState`) for an indexer that is alive. Of any other
    /// role it is [`Command::RemoveNode`].
    RemoveNodeForced {
        /// The node.
        node: NodeId,
    },
    /// Gives each slice that is on silent indexers alone to another one, which rebuilds it from the source. The silent indexers stay
    /// nodes of the cluster; one that comes back drops what the catalog no longer gives it. From the leader.
    PlaceLost {
        /// Indexers that have been silent for so long that their copies count as lost for good.
        lost: Vec<NodeId>,
        /// Indexers that are silent for longer than a build waits for them. They may be among `lost`.
        lost_to_builds: Vec<NodeId>,
    },
    /// A command that places slices, with what the state cannot know. The leader makes it of the client's command.
    Avoiding {
        /// Indexers that have been silent for some seconds, ascending. They get slices only if there are too few others.
        silent: Vec<NodeId>,
        /// The command.
        command: Box<Command>,
    },
    /// CREATE BUCKET … FROM FILES: a data set without versions. In a [`Command::Create`].
    CreateDataSet {
        /// Its name.
        name: String,
        /// See [`DataSet`](crate::model::data_set::DataSet).
        partitions: u16,
        /// See [`DataSet`](crate::model::data_set::DataSet).
        replication: u16,
        /// See [`DataSet`](crate::model::data_set::DataSet).
        idle_ms: u64,
        /// Not an error if there is one of that name.
        if_not_exists: bool,
    },
    /// ALTER BUCKET … SET (version_idle = …).
    SetVersionIdle {
        /// The data set's name.
        bucket: String,
        /// See [`DataSet`](crate::model::data_set::DataSet).
        idle_ms: u64,
    },
    /// ALTER BUCKET … LOAD VERSION: begins a version. In a [`Command::Create`]. Refused (`WrongState`) while another one is loading.
    LoadVersion {
        /// The data set's name.
        bucket: String,
        /// The version's name, new in the data set.
        version: String,
        /// Its files.
        files: Files,
    },
    /// ALTER BUCKET … CANCEL VERSION: removes a version that is loading. Refused (`WrongState`) for any other.
    CancelVersion {
        /// The data set's name.
        bucket: String,
        /// The version's name.
        version: String,
    },
    /// A projector has partitions of a version durably. From that projector.
    PartitionsLoaded {
        /// The version's bucket.
        bucket: BucketId,
        /// The projector.
        node: NodeId,
        /// The partitions, ascending.
        partitions: Vec<(VbucketId, PartitionContent)>,
        /// Everything that the projector has read from the files; `None` if the partitions were whole when its process began, and others
        /// have told what they contain.
        read: Option<FilesRead>,
    },
    /// A projector does not have these partitions any more. From that projector.
    PartitionsLost {
        /// The version's bucket.
        bucket: BucketId,
        /// The projector.
        node: NodeId,
        /// The partitions.
        partitions: Vec<VbucketId>,
    },
    /// A projector cannot load a version: it ends. From that projector.
    VersionFailed {
        /// The version's bucket.
        bucket: BucketId,
        /// The projector.
        node: NodeId,
        /// The reason, for users.
        error: Error,
    },
    /// Other holders own partitions from here on, because the owners are silent. From the leader.
    OwnPartitions {
        /// The version's bucket.
        bucket: BucketId,
        /// The partitions and their owners.
        owners: Vec<(VbucketId, NodeId)>,
    },
    /// Begins the generation of an index over a version that is complete. In a [`Command::Create`]. From the leader.
    BuildVersion {
        /// The generation that serves.
        from: LocalIndexId,
        /// The version's bucket.
        bucket: BucketId,
    },
    /// Makes the version that is loading current, and puts its generations in the place of those that serve. From the leader.
    SwitchVersion {
        /// The data set's bucket.
        data_set: BucketId,
        /// The version's number.
        version: u64,
    },
    /// Nobody reads an old version any more. From the leader.
    DropVersion {
        /// The data set's bucket.
        data_set: BucketId,
        /// The version's number.
        version: u64,
    },
    /// `ALTER INDEX … SET (slice_bytes_max = …)`.
    SetSliceBytesMax {
        /// The index's name.
        index: String,
        /// The size of a slice from which on the index gets more slices, in bytes; 0 means never.
        bytes: u64,
    },
    /// An index has outgrown its slices: begins a generation with more of them. From the leader.
    GrowIndex {
        /// The generation that serves. Nothing is done if another one does by now.
        from: LocalIndexId,
        /// The new number of slices.
        slices: u16,
    },
    /// A slice of an index by ranges has outgrown the limit: begins a generation in which it is split. From the leader.
    SplitSlice {
        /// The generation that serves. Nothing is done if another one does by now.
        from: LocalIndexId,
        /// The slice.
        slice: SliceNo,
        /// The split point, as an encoded key part.
        at: Vec<u8>,
    },
    /// CREATE USER, ALTER USER, DROP USER, GRANT, REVOKE.
    Users(Box<UserCommand>),
    /// A command about the bucket, or an index of the bucket, that its sender has looked up by name and may change. Refused (`Unknown`) if
    /// the name means another one by now. See [`Command::names_bucket`].
    On {
        /// The bucket that the sender means.
        bucket: BucketId,
        /// The command.
        command: Box<Command>,
    },
    /// ALTER USER of its sender: of this user, and of no other one that has its name by now, which is refused (`UnknownUser`).
    Of {
        /// The user.
        user: UserId,
        /// The command.
        command: Box<Command>,
    },
    /// ALTER BUCKET … LOAD VERSION … WITH (allow_empty): of files that may have no rows. In a [`Command::Create`].
    AllowEmpty {
        /// [`Command::LoadVersion`].
        command: Box<Command>,
    },
}

/// A bucket as a command names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBucket<'a> {
    /// By its name.
    Bucket(&'a str),
    /// By the name of one of its indexes.
    OfIndex(&'a str),
}

impl Command {
    /// The user whom a command changes, by its name; `None` for all others.
    pub fn alters_user(&self) -> Option<&str> {
        match self {
            Self::Users(command) => match &**command {
                UserCommand::Alter { name, .. } => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// The bucket that a command of a user names, in commands that change what is there; `None` for all others.
    pub fn names_bucket(&self) -> Option<NamedBucket<'_>> {
        use NamedBucket::{Bucket, OfIndex};
        match self {
            Self::DropBucket { name: bucket, .. }
            | Self::BuildIndexes { bucket, .. }
            | Self::SetCopies { bucket, .. }
            | Self::SetVersionIdle { bucket, .. }
            | Self::LoadVersion { bucket, .. }
            | Self::CancelVersion { bucket, .. }
            | Self::HandOver { bucket, .. }
            | Self::CancelHandOver { bucket }
            | Self::MoveBucket { bucket, .. } => Some(Bucket(bucket)),
            Self::CreateIndex { spec, .. } => Some(Bucket(&spec.bucket)),
            Self::BuildGeneration { spec, .. } => Some(Bucket(&spec.bucket)),
            Self::DropIndex { name: index, .. }
            | Self::CancelBuild { name: index }
            | Self::SetReplicas { index, .. }
            | Self::SetSeparateIncludedColumns { index, .. }
            | Self::SetSliceBytesMax { index, .. }
            | Self::CancelMoves { index: Some(index) } => Some(OfIndex(index)),
            Self::Users(command) => match &**command {
                UserCommand::Grant { on: GrantOn::Bucket(bucket), .. }
                | UserCommand::Revoke { on: GrantOn::Bucket(bucket), .. } => Some(Bucket(bucket)),
                _ => None,
            },
            Self::AllowEmpty { command } => command.names_bucket(),
            _ => None,
        }
    }
}

recursive!(Command, enter_command);

/// A new stability timestamp of one bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promotion {
    /// The bucket.
    pub bucket: BucketId,
    /// The positions that changed since the bucket's last epoch.
    pub changes: Vec<(VbucketId, Position)>,
    /// No scan asks for an epoch below this one any more.
    pub horizon: Epoch,
}

/// The outcomes of commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// A bucket of that name exists now.
    Bucket(BucketId),
    /// An index of that name exists now; it serves scans when its state is `maintenance`.
    Index(IndexId),
    /// Indexes that are being built now.
    Building(Vec<IndexId>),
    /// Moves that begin, or end, now.
    Moves(Vec<MoveId>),
    /// Done, or nothing to do (IF EXISTS).
    Done,
    /// Refused; the state is as it was.
    Refused(Error),
    /// The process is a node of this cluster now.
    Joined(ClusterId),
    /// The projector lacks something that the last epoch covers; the state is as it was.
    Lacks {
        /// The last epoch.
        epoch: Epoch,
        /// What is missing, for users.
        error: Error,
    },
    /// The projector has what the last epoch covers, and leads its bucket.
    Opened(Copies),
    /// The copies of a bucket as they are now.
    Copies(Copies),
    /// This generation of an index is being built, and will take the place of the one that serves.
    Generation(LocalIndexId),
    /// The version of this data set, with this number, is loading.
    Version(BucketId, u64),
    /// The users are as the command wants them.
    User {
        /// The user's number; `None` if there is none of that name (IF EXISTS).
        id: Option<UserId>,
        /// The number of the token that the command made.
        token: Option<TokenId>,
        /// The users with this `cas`, and all later ones, show the change.
        cas: u64,
    },
}
