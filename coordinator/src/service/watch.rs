//! Watches: streams of the catalog, the epochs or the users to other processes, from any member.
//!
//! A watch keeps no queue. It remembers what it has sent and, when the state changes, sends the
//! difference. So a slow watcher delays no other and needs no memory. A watcher that has not
//! requested epochs is not woken by them; users have a separate watch. Intermediate catalogs are
//! skipped. Epochs are not skipped, as long as the state retains them. The catalog is sent before
//! the epochs of the same state, so that no watcher receives an epoch of an unknown bucket. A
//! long history of epochs is split into several messages.
//!
//! A member that has no connection to the others sees no changes and knows no leader. It ends its
//! watches after a while, so that the watchers connect to another member.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::stream;
use proto::Error;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch};
use proto::rpc::api::{ResultStream, WatchKind, WatchMessage};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::raft::RaftRole;
use crate::raft::not_leader;
use crate::replica::Replica;

/// The size limit of a message of epochs, in bytes: a sixteenth of the largest message between
/// processes.
const MARKS_BYTES_MAX: usize = 4 << 20;
/// The encoded size limit of a vbucket's position, in bytes: two 64-bit numbers in their longest
/// form.
const POSITION_BYTES_MAX: usize = 20;
/// The encoded size limit of an epoch's record without its cut, in bytes: five 64-bit numbers in
/// their longest form.
const MARK_BYTES_MAX: usize = 50;
/// The time for which a watch stays open without a leader: longer than an election.
const LEADERLESS_MAX: Duration = Duration::from_secs(2);

/// A stream to one watcher: the state that it has received, and the messages that it must
/// receive.
struct Watch {
    replica: Arc<Replica>,
    changes: watch::Receiver<u64>,
    /// The role of the member; closed when the member stops.
    role: watch::Receiver<RaftRole>,
    /// The time since which the member knows no leader; `None` while it knows one.
    leaderless: Option<Instant>,
    wanted: WatchKind,
    catalog_cas: Option<u64>,
    users_cas: Option<u64>,
    epochs: BTreeMap<BucketId, Epoch>,
    waiting: VecDeque<WatchMessage>,
}

/// Returns the stream of changes for a watcher. The stream ends with an error when the member
/// stops, or has known no leader for `LEADERLESS_MAX`.
pub fn watch(
    replica: Arc<Replica>,
    role: watch::Receiver<RaftRole>,
    wanted: WatchKind,
) -> ResultStream<WatchMessage> {
    let changes = match wanted {
        // A stability timestamp would wake each of hundreds of watchers in vain.
        WatchKind::Catalog => replica.catalog_changes(),
        WatchKind::CatalogAndEpochs => replica.changes(),
        WatchKind::Users => replica.users_changes(),
    };
    let watch = Watch {
        changes,
        replica,
        role,
        leaderless: None,
        wanted,
        catalog_cas: None,
        users_cas: None,
        epochs: BTreeMap::new(),
        waiting: VecDeque::new(),
    };
    Box::pin(stream::unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        match watch.next().await {
            Ok(message) => Some((Ok(message), Some(watch))),
            Err(error) => Some((Err(error), None)),
        }
    }))
}

impl Watch {
    async fn next(&mut self) -> Result<WatchMessage, Error> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(message);
            }
            self.queue_changes();
            if self.waiting.is_empty() {
                self.wait().await?;
            }
        }
    }

    /// Waits for a change of the state. Returns an error when the member has known no leader for
    /// `LEADERLESS_MAX`.
    async fn wait(&mut self) -> Result<(), Error> {
        let stopped = || Error::unavailable("this coordinator member has stopped");
        loop {
            self.leaderless = match self.role.borrow_and_update().leader {
                Some(_) => None,
                None => self.leaderless.or_else(|| Some(Instant::now())),
            };
            let give_up = self.leaderless.map(|since| since + LEADERLESS_MAX);
            tokio::select! {
                biased;
                changed = self.changes.changed() => return changed.map_err(|_| stopped()),
                changed = self.role.changed() => changed.map_err(|_| stopped())?,
                () = sleep_until(give_up.unwrap_or_else(Instant::now)), if give_up.is_some() => {
                    return Err(not_leader(None));
                }
            }
        }
    }

    /// Queues the messages with all changes that the watcher has not received.
    fn queue_changes(&mut self) {
        self.changes.mark_unchanged();
        let view = self.replica.view();
        if self.wanted == WatchKind::Users {
            let users = view.state.users();
            if self.users_cas.replace(users.cas) != Some(users.cas) {
                let (cluster, users) = (view.state.cluster(), Arc::clone(users));
                self.waiting.push_back(WatchMessage::Users { cluster, users });
            }
            return;
        }
        if self.catalog_cas != Some(view.catalog.cas) {
            self.catalog_cas = Some(view.catalog.cas);
            self.waiting.push_back(WatchMessage::Catalog(view.catalog.clone()));
        }
        if self.wanted == WatchKind::Catalog {
            return;
        }
        let mut messages = Messages::default();
        for (id, bucket) in view.state.buckets() {
            let sent = self.epochs.entry(id).or_default();
            bucket.epochs.after(*sent).for_each(|mark| messages.add(mark));
            *sent = bucket.epochs.last().epoch;
        }
        self.epochs.retain(|bucket, _| view.state.bucket(*bucket).is_some());
        self.waiting.extend(messages.finish().map(WatchMessage::Epochs));
    }
}

/// Collects epochs into messages of bounded size. Cuts are shared with the state until they are
/// sent.
#[derive(Default)]
struct Messages {
    full: Vec<Vec<EpochMark>>,
    last: Vec<EpochMark>,
    last_bytes: usize,
}

impl Messages {
    fn add(&mut self, mark: &EpochMark) {
        let bytes = MARK_BYTES_MAX + POSITION_BYTES_MAX * usize::from(mark.cut.vbuckets());
        if self.last_bytes + bytes > MARKS_BYTES_MAX && !self.last.is_empty() {
            self.full.push(std::mem::take(&mut self.last));
            self.last_bytes = 0;
        }
        self.last_bytes += bytes;
        self.last.push(mark.clone());
    }

    fn finish(self) -> impl Iterator<Item = Vec<EpochMark>> {
        let last = Some(self.last).filter(|last| !last.is_empty());
        self.full.into_iter().chain(last)
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use proto::model::bucket::SourceKind;
    use proto::model::cut::Position;
    use proto::model::ids::{NodeId, Seqno, VbucketId, Vbuuid};
    use proto::rpc::command::{
        Command, CreateBucket, DropBucket, PromoteEpochs, Promotion, Proposal,
    };
    use tokio::time::timeout;

    use super::*;
    use crate::raft::StateMachine;
    use crate::replica::{Machine, encode_record};
    use crate::state::Decisions;
    use crate::state::StateContext;
    use crate::state::tests::{apply, one_branch, with_bucket};

    const LED: RaftRole = RaftRole { term: 1, leader: Some(NodeId(1)), leads: false };

    fn replica(state: &StateContext) -> Arc<Replica> {
        let replica = Replica::new();
        Machine(replica.clone()).restore(&state.to_bytes().unwrap()).unwrap();
        replica
    }

    /// Returns a state with epochs 2 to `last` of bucket 2, which has 1,024 vbuckets.
    fn wide(last: u64) -> StateContext {
        let mut state = with_bucket();
        let create = Command::CreateBucket(CreateBucket {
            name: "wide".into(),
            vbuckets: 1024,
            source: SourceKind::Embedded,
            projectors: 1,
            copies: None,
            if_not_exists: false,
        });
        apply(&mut state, create);
        one_branch(&mut state, BucketId(2), u64::MAX);
        for n in 2..=last {
            let position = Position { vbuuid: Vbuuid(u64::MAX), seqno: Seqno(u64::MAX - last + n) };
            let changes = (0..1024).map(|vbucket| (VbucketId(vbucket), position)).collect();
            let promotion = Promotion { bucket: BucketId(2), changes, horizon: Epoch(1) };
            let command = Command::PromoteEpochs(PromoteEpochs {
                promotions: vec![promotion],
                joined: Vec::new(),
            });
            state.apply(100 + n, &Decisions::at(n), &command.into());
        }
        state
    }

    #[tokio::test]
    async fn a_long_history_is_sent_in_messages_of_bounded_size() {
        let (_role, role) = watch::channel(LED);
        let mut watch = super::watch(replica(&wide(600)), role, WatchKind::CatalogAndEpochs);
        let mut epochs = Vec::new();
        while epochs.last() != Some(&600) {
            let message = watch.next().await.unwrap().unwrap();
            let bytes = postcard::to_stdvec(&message).unwrap().len();
            assert!(bytes <= MARKS_BYTES_MAX + 10, "{bytes}");
            if let WatchMessage::Epochs(marks) = message {
                let wide = marks.iter().filter(|mark| mark.bucket == BucketId(2));
                epochs.extend(wide.map(|mark| mark.epoch.0));
            }
        }
        assert_eq!(epochs, (1..=600).collect::<Vec<_>>(), "all, in order");
    }

    /// Cuts are most of the bytes of a watch, and most watchers do not use them.
    #[tokio::test]
    async fn a_watch_of_the_catalog_has_no_epochs() {
        let (_role, role) = watch::channel(LED);
        let replica = replica(&wide(3));
        let mut watch = super::watch(replica.clone(), role, WatchKind::Catalog);
        let catalog = watch.next().await.unwrap().unwrap();
        assert!(matches!(&catalog, WatchMessage::Catalog(catalog) if catalog.buckets.len() == 2));
        let mut machine = Machine(replica.clone());
        let position = Position { vbuuid: Vbuuid(u64::MAX), seqno: Seqno(u64::MAX) };
        let changes = vec![(VbucketId(0), position)];
        let promotion = Promotion { bucket: BucketId(2), changes, horizon: Epoch(1) };
        let mut propose = |at, command| {
            let request = Proposal::from(command);
            machine.apply(at, &encode_record(Decisions::at(at), request).unwrap()).unwrap()
        };
        propose(
            900,
            Command::PromoteEpochs(PromoteEpochs {
                promotions: vec![promotion],
                joined: Vec::new(),
            }),
        );
        let second = Duration::from_secs(1);
        assert!(timeout(second / 10, watch.next()).await.is_err(), "an epoch is no news");
        propose(901, Command::DropBucket(DropBucket { bucket: BucketId(1), restrict: false }));
        let changed = timeout(second, watch.next()).await.unwrap().unwrap().unwrap();
        assert!(matches!(&changed, WatchMessage::Catalog(catalog) if catalog.buckets.len() == 1));
    }

    /// Users have a separate watch: it sends the users at once, and again at each change.
    #[tokio::test]
    async fn a_watch_of_the_users_has_nothing_else() {
        use proto::model::users::{Secret32, UserCommand, UserLimits};
        let (_role, role) = watch::channel(LED);
        let replica = replica(&wide(3));
        let mut watch = super::watch(replica.clone(), role.clone(), WatchKind::Users);
        let mut catalogs = super::watch(replica.clone(), role, WatchKind::Catalog);
        let users = |message| match message {
            WatchMessage::Users { users, .. } => users,
            other => panic!("{other:?}"),
        };
        let first = users(watch.next().await.unwrap().unwrap());
        assert_eq!((first.cas, first.by_name.len()), (0, 0));
        catalogs.next().await.unwrap().unwrap();
        let mut machine = Machine(replica.clone());
        let mut propose = |at, command| {
            let request = Proposal::from(command);
            machine.apply(at, &encode_record(Decisions::at(at), request).unwrap()).unwrap()
        };
        let second = Duration::from_secs(1);
        propose(900, Command::DropBucket(DropBucket { bucket: BucketId(1), restrict: false }));
        assert!(timeout(second / 10, watch.next()).await.is_err(), "a catalog is no news");
        catalogs.next().await.unwrap().unwrap();
        let (name, limits) = ("ada".to_owned(), UserLimits::default());
        let fresh = Secret32::new([1; 32]);
        let create = UserCommand::Create { name, secret: None, limits, fresh, first: true };
        let applied = propose(901, Command::Users(Box::new(create)));
        let changed = users(timeout(second, watch.next()).await.unwrap().unwrap().unwrap());
        assert!(changed.find_by_name("ada").is_some());
        assert!(
            matches!(applied.outcome, proto::rpc::command::Outcome::User { cas, .. } if cas == changed.cas)
        );
        assert!(timeout(second / 10, catalogs.next()).await.is_err(), "the catalog is the same");
    }

    #[tokio::test]
    async fn a_member_without_a_leader_ends_its_watches() {
        let (role, role_out) = watch::channel(LED);
        let mut watch =
            super::watch(replica(&with_bucket()), role_out, WatchKind::CatalogAndEpochs);
        for _ in 0..2 {
            watch.next().await.unwrap().unwrap();
        }
        let second = Duration::from_secs(1);
        let mut quiet = async |time| assert!(timeout(time, watch.next()).await.is_err());
        quiet(second / 10).await;
        // An election in which one candidate tries again and again.
        for term in 2..5 {
            role.send_replace(RaftRole { term, leader: None, leads: false });
            quiet(second / 2).await;
        }
        role.send_replace(RaftRole { term: 5, ..LED });
        quiet(second / 10).await;
        for term in 6..9 {
            role.send_replace(RaftRole { term, leader: None, leads: false });
            quiet(second / 2).await;
        }
        let ended = timeout(second, watch.next()).await.unwrap().unwrap();
        assert_eq!(ended.unwrap_err().code, proto::ErrorCode::NotLeader);
        assert!(watch.next().await.is_none());
    }
}
