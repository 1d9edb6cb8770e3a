//! The privileges that commands need. A new command does not compile until it has its line here.

use proto::model::ids::{IndexId, LocalIndexId};
use proto::model::users::{GrantOn, NewSecret, Privilege, UserChange, UserCommand};
use proto::rpc::command::Command;

/// What a command needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// A privilege on all.
    All(Privilege),
    /// A privilege on the bucket or data set with a name.
    Bucket(Privilege, Named),
    /// A privilege on the bucket of the index with a name.
    Index(Privilege, Named),
    /// A privilege on the bucket of a generation of an index, and on the bucket with a name, if there is one.
    Generation(Privilege, LocalIndexId, Option<String>),
    /// A privilege on the buckets of indexes.
    Indexes(Privilege, Vec<IndexId>),
    /// The user that a command changes is the sender, or the sender has [`Privilege::Admin`] on all.
    Oneself(String),
    /// The same, and the sender has proved to know the present password: whoever has a token or a certificate must not make a secret of it
    /// that outlives it.
    OwnPassword(String),
    /// No user may send it: it is from a process of the cluster.
    Never,
}

/// A name, and what its absence means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    /// IF EXISTS: nothing is to be done.
    pub(super) may_lack: bool,
}

fn bucket(privilege: Privilege, name: &str) -> Need {
    Need::Bucket(privilege, Named { name: name.to_owned(), may_lack: false })
}

fn index(privilege: Privilege, name: &str) -> Need {
    Need::Index(privilege, Named { name: name.to_owned(), may_lack: false })
}

/// The need of a command.
pub(super) fn of_command(command: &Command) -> Need {
    use Privilege::{Admin, Define, Rebalance};
    match command {
        Command::CreateBucket { .. }
        | Command::CreateCopied { .. }
        | Command::CreateDataSet { .. } => Need::All(Define),
        Command::DropBucket { name, if_exists, .. } => {
            Need::Bucket(Define, Named { name: name.clone(), may_lack: *if_exists })
        }
        Command::CreateIndex { spec, .. } => bucket(Define, &spec.bucket),
        Command::BuildIndexes { bucket: name, .. }
        | Command::SetCopies { bucket: name, .. }
        | Command::SetVersionIdle { bucket: name, .. }
        | Command::LoadVersion { bucket: name, .. }
        | Command::CancelVersion { bucket: name, .. } => bucket(Define, name),
        Command::DropIndex { name, if_exists } => {
            Need::Index(Define, Named { name: name.clone(), may_lack: *if_exists })
        }
        Command::CancelBuild { name }
        | Command::SetReplicas { index: name, .. }
        | Command::SetSeparateIncludedColumns { index: name, .. }
        | Command::SetSliceBytesMax { index: name, .. } => index(Define, name),
        Command::BuildGeneration { from, spec, .. } => {
            Need::Generation(Define, *from, Some(spec.bucket.clone()))
        }
        Command::RenameIndex { from, .. } => Need::Generation(Define, *from, None),
        Command::StartMoves(moves) => {
            Need::Indexes(Rebalance, moves.iter().map(|each| each.index).collect())
        }
        Command::CancelMoves { index: Some(name) } => index(Rebalance, name),
        Command::HandOver { bucket: name, .. }
        | Command::CancelHandOver { bucket: name }
        | Command::MoveBucket { bucket: name, .. } => bucket(Rebalance, name),
        Command::CancelMoves { index: None } | Command::DrainNode { .. } => Need::All(Rebalance),
        Command::RemoveNode { .. } | Command::RemoveNodeForced { .. } => Need::All(Admin),
        Command::Users(command) => of_users(command),
        Command::AllowEmpty { command } => of_command(command),
        Command::Create { .. }
        | Command::RegisterNode(_)
        | Command::IndexReady { .. }
        | Command::AdvanceMove { .. }
        | Command::EndMove { .. }
        | Command::PromoteEpochs(_)
        | Command::PromoteJoined { .. }
        | Command::Rollback { .. }
        | Command::Join(_)
        | Command::SkipEpochs(_)
        | Command::OpenSource { .. }
        | Command::HandedOver { .. }
        | Command::ChangeCopies { .. }
        | Command::DropGeneration(_)
        | Command::PlaceLost { .. }
        | Command::Avoiding { .. }
        | Command::PartitionsLoaded { .. }
        | Command::PartitionsLost { .. }
        | Command::VersionFailed { .. }
        | Command::OwnPartitions { .. }
        | Command::BuildVersion { .. }
        | Command::SwitchVersion { .. }
        | Command::DropVersion { .. }
        | Command::GrowIndex { .. }
        | Command::SplitSlice { .. }
        | Command::On { .. }
        | Command::Of { .. } => Need::Never,
    }
}

fn of_users(command: &UserCommand) -> Need {
    let on = |on: &GrantOn| match on {
        GrantOn::All => Need::All(Privilege::Admin),
        GrantOn::Bucket(name) => bucket(Privilege::Admin, name),
    };
    match command {
        UserCommand::Alter { name, change } => match change {
            UserChange::Secret(NewSecret::Password { .. }) => Need::OwnPassword(name.clone()),
            UserChange::DropToken(_) => Need::Oneself(name.clone()),
            // A token may outlive the password of its user.
            UserChange::Secret(NewSecret::Token { .. })
            | UserChange::DropPassword
            | UserChange::Limits(_) => Need::All(Privilege::Admin),
        },
        UserCommand::Create { .. } | UserCommand::Drop { .. } => Need::All(Privilege::Admin),
        UserCommand::Grant { on: object, .. } | UserCommand::Revoke { on: object, .. } => {
            on(object)
        }
    }
}
