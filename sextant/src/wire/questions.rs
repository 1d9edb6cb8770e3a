//! Sends questions (short requests) to another process, on streams that stay open. An ordinary
//! call needs a separate stream with headers and trailers, which is most of the cost of a scan of
//! a hundred rows.
//!
//! Each connection has a few *lanes*. A lane is a pair of streams: one for questions, and one for
//! their answers in any order. Each answer has the number of its question. A task of the lane
//! reads the answers. The streams are opened for the first question, and again after they have
//! ended. A question whose caller has stopped waiting is cancelled, and the other process stops
//! its work. Only reads are sent in this way, since a question may be sent twice.
//!
//! The other process may use another protocol version or belong to another cluster. It then
//! refuses the stream, and the question is sent as an ordinary call, which handles these cases
//! ([`LostReason::Refused`]).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use proto::env::{Env, Task};
use proto::grpc::peer_client::PeerClient;
use proto::grpc::{PeerAnswer, PeerQuestion};
use proto::lock::lock;
use proto::model::identity::ClusterId;
use proto::model::ids::NodeId;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// The number of lanes of a connection. The other process handles the questions of one lane one
/// after another, and the questions of different lanes in parallel.
const LANES: usize = 4;

/// The time after which lanes are opened again to a process that has refused them, since a newer
/// process may run at its address by then.
const UNKNOWN_FOR: Duration = Duration::from_secs(60);

/// The reason why a question has no answer.
pub(super) enum LostReason {
    /// The other process refuses lanes from this process. An ordinary call may succeed.
    Refused,
    /// The stream ended.
    Ended(Status),
}

/// The lanes of a connection, on which questions are sent.
pub(super) struct Lanes {
    env: Env,
    lanes: [Mutex<Option<Arc<Lane>>>; LANES],
    next: AtomicUsize,
    /// The time at which the other process has refused lanes; `None` if it has not.
    unknown_at: Arc<Mutex<Option<Instant>>>,
}

/// A stream of questions, and a stream of their answers.
struct Lane {
    /// The protocol version with which the lane was opened; the next field is the cluster.
    version: u32,
    cluster: Option<ClusterId>,
    questions: mpsc::UnboundedSender<PeerQuestion>,
    waiting: Arc<Mutex<WaitingQuestions>>,
    /// The task that reads the answers, until the lane is dropped.
    _reader: Task,
}

/// The questions of a lane that have no answer yet, with their callers.
#[derive(Default)]
struct WaitingQuestions {
    last: u64,
    callers: BTreeMap<u64, oneshot::Sender<Result<Bytes, LostReason>>>,
    has_ended: bool,
}

/// The unanswered questions of a lane, in the hands of the task that reads the answers. However
/// this task ends, all of them fail.
struct LaneQuestions(Arc<Mutex<WaitingQuestions>>);

impl Drop for LaneQuestions {
    fn drop(&mut self) {
        lock(&self.0).end(ended);
    }
}

/// Returns the reason for a lane that has ended.
fn ended() -> LostReason {
    LostReason::Ended(Status::unavailable("the stream of questions has ended"))
}

impl WaitingQuestions {
    /// Adds a question and returns its number. Returns `None` if the lane has ended.
    fn add(&mut self, caller: oneshot::Sender<Result<Bytes, LostReason>>) -> Option<u64> {
        if self.has_ended {
            return None;
        }
        self.last += 1;
        self.callers.insert(self.last, caller);
        Some(self.last)
    }

    /// Ends the lane: all unanswered questions fail with a reason.
    fn end(&mut self, lost: impl Fn() -> LostReason) {
        self.has_ended = true;
        for caller in std::mem::take(&mut self.callers).into_values() {
            // The caller may have stopped waiting.
            let _gone = caller.send(Err(lost()));
        }
    }
}

/// A question that waits for its answer. Dropping this value cancels the question.
struct QuestionInFlight<'l> {
    lane: &'l Lane,
    number: u64,
}

impl Drop for QuestionInFlight<'_> {
    fn drop(&mut self) {
        if lock(&self.lane.waiting).callers.remove(&self.number).is_some() {
            let take_back = PeerQuestion { number: self.number, ..Default::default() };
            // The stream may have ended.
            let _ended = self.lane.questions.send(take_back);
        }
    }
}

/// The parameters with which a lane is opened, for a question.
pub(super) struct LaneParameters<'c> {
    pub client: PeerClient<Channel>,
    /// The protocol version of the questions.
    pub version: u32,
    /// The cluster of this process.
    pub cluster: Option<ClusterId>,
    /// A function that adds the headers of this process to a message.
    pub sign: &'c (dyn Fn(&mut MetadataMap) + Sync),
}

impl Lanes {
    pub fn new(env: Env) -> Self {
        let (lanes, next) = (Default::default(), AtomicUsize::new(0));
        Self { env, lanes, next, unknown_at: Arc::default() }
    }

    /// Sends a question to a node and waits for the answer.
    pub async fn ask(
        &self,
        opening: LaneParameters<'_>,
        node: NodeId,
        body: Bytes,
    ) -> Result<Bytes, LostReason> {
        let unknown_at = *lock(&self.unknown_at);
        if unknown_at.is_some_and(|at| at.elapsed() < UNKNOWN_FOR) {
            return Err(LostReason::Refused);
        }
        let version = opening.version;
        let lane = self.lane(opening);
        let (tell, told) = oneshot::channel();
        // The lane may have ended meanwhile; then the question was not sent.
        let Some(number) = lock(&lane.waiting).add(tell) else { return Err(LostReason::Refused) };
        let _asked = QuestionInFlight { lane: &lane, number };
        let question = PeerQuestion { number, node: node.0, version, body };
        if lane.questions.send(question).is_err() {
            return Err(LostReason::Refused);
        }
        told.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Returns the lanes of the connection in turn. Opens the lane first if it does not exist,
    /// has ended, or was opened with other parameters.
    fn lane(&self, opening: LaneParameters<'_>) -> Arc<Lane> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % LANES;
        let mut place = lock(&self.lanes[turn]);
        let is_good = |lane: &&Arc<Lane>| {
            (lane.version, lane.cluster) == (opening.version, opening.cluster)
                && !lock(&lane.waiting).has_ended
        };
        if let Some(lane) = place.as_ref().filter(is_good) {
            return Arc::clone(lane);
        }
        let lane = Arc::new(self.open(opening));
        *place = Some(Arc::clone(&lane));
        lane
    }

    /// Opens a lane and starts its task.
    fn open(&self, opening: LaneParameters<'_>) -> Lane {
        let LaneParameters { client, version, cluster, sign } = opening;
        let (questions, asked) = mpsc::unbounded_channel();
        let waiting: Arc<Mutex<WaitingQuestions>> = Arc::default();
        let mut request = Request::new(UnboundedReceiverStream::new(asked));
        sign(request.metadata_mut());
        let (told, unknown_at) =
            (LaneQuestions(Arc::clone(&waiting)), Arc::clone(&self.unknown_at));
        let reader = self.env.spawn_request("questions", async move {
            if let Err(status) = read_answers(client, request, &told.0).await {
                if status.code() == Code::Unimplemented {
                    *lock(&unknown_at) = Some(Instant::now());
                }
                lock(&told.0).end(|| lost_reason(&status));
            }
        });
        Lane { version, cluster, questions, waiting, _reader: reader }
    }
}

/// Opens the streams of a lane. Passes the answers to their callers until the stream of answers
/// ends.
async fn read_answers(
    mut client: PeerClient<Channel>,
    questions: Request<UnboundedReceiverStream<PeerQuestion>>,
    waiting: &Mutex<WaitingQuestions>,
) -> Result<(), Status> {
    let mut answers = client.ask(questions).await?.into_inner();
    while let Some(PeerAnswer { number, body }) = answers.message().await? {
        if let Some(caller) = lock(waiting).callers.remove(&number) {
            // The caller may have stopped waiting.
            let _gone = caller.send(Ok(body));
        }
    }
    Ok(())
}

/// Returns the reason that a status stands for. A process that does not support lanes, has
/// another protocol version, or belongs to another cluster refuses the stream, or ends it before
/// it answers a question. Any other status comes from the connection.
fn lost_reason(status: &Status) -> LostReason {
    match status.code() {
        Code::Unimplemented | Code::FailedPrecondition => LostReason::Refused,
        // One message was too long, which does not affect the other questions.
        Code::OutOfRange | Code::ResourceExhausted => {
            LostReason::Ended(Status::unavailable(status.message()))
        }
        _ => LostReason::Ended(status.clone()),
    }
}
