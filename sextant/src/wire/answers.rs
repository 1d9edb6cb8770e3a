//! The answers to the questions of one shared stream (`questions`).
//!
//! A question is worked on where it arrives, and is mostly answered there: a read of blocks in memory does not wait, and costs no task and
//! no thread switch. A question that has to wait, for an epoch, a place or the disk, gets a separate task. So neither later questions nor a
//! caller that reads no answers delay it, and it releases its place in time.
//!
//! At most [`RUNNING_MAX`] questions of a stream have a task. Further ones wait in a queue, from which they can be cancelled like the
//! others.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;

use futures::{FutureExt, Stream, stream};
use proto::env::{Env, Task};
use proto::grpc::{PeerAnswer, PeerQuestion};
use proto::model::identity::ClusterId;
use tokio::sync::mpsc;
use tonic::metadata::MetadataMap;
use tonic::{Status, Streaming};

use super::methods::QUESTION_BYTES_MAX;

/// Questions of one stream that have a task.
const RUNNING_MAX: usize = 256;
/// Questions of one stream that wait for a task. A caller with more of them loses its stream.
const WAITING_MAX: usize = 4_096;

/// The answers of a stream.
pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<PeerAnswer, Status>> + Send>>;

/// Answers questions.
pub(super) trait Answer: Send + Sync + 'static {
    /// Starts the tasks of questions that wait.
    fn env(&self) -> &Env;

    /// Checks that a question may be answered: its protocol version, and the headers and the cluster of its stream.
    fn accept(
        &self,
        version: u32,
        headers: &MetadataMap,
        cluster: Option<ClusterId>,
    ) -> Result<(), Status>;

    /// Answers a question.
    fn answer(&self, question: PeerQuestion) -> impl Future<Output = PeerAnswer> + Send + 'static;

    /// The answer to a question whose work has failed.
    fn failed(number: u64) -> PeerAnswer;
}

/// Answers the questions of a stream with these headers.
pub(super) fn answers<A: Answer>(
    endpoint: A,
    headers: MetadataMap,
    cluster: Option<ClusterId>,
    questions: Streaming<PeerQuestion>,
) -> Answers {
    let (tell, told) = mpsc::unbounded_channel();
    let begun = LaneAnswers {
        endpoint,
        headers,
        cluster,
        questions: Some(questions),
        waiting: VecDeque::new(),
        running: BTreeMap::new(),
        tell,
        told,
    };
    Box::pin(stream::unfold(begun, |mut answering| async move {
        let answer = answering.next().await?;
        Some((answer, answering))
    }))
}

struct LaneAnswers<A> {
    endpoint: A,
    headers: MetadataMap,
    cluster: Option<ClusterId>,
    /// `None` after the last one.
    questions: Option<Streaming<PeerQuestion>>,
    /// Questions that wait for a task, in the order of their arrival.
    waiting: VecDeque<PeerQuestion>,
    /// The tasks, by the numbers of their questions.
    running: BTreeMap<u64, Task>,
    /// The answers of the tasks: one of each, so that the channel needs no bound.
    tell: mpsc::UnboundedSender<PeerAnswer>,
    told: mpsc::UnboundedReceiver<PeerAnswer>,
}

impl<A: Answer> LaneAnswers<A> {
    /// The next answer. After an error the stream ends.
    async fn next(&mut self) -> Option<Result<PeerAnswer, Status>> {
        loop {
            while self.running.len() < RUNNING_MAX
                && let Some(question) = self.waiting.pop_front()
            {
                if let Some(answer) = self.work(question) {
                    return Some(Ok(answer));
                }
            }
            if self.questions.is_none() && self.running.is_empty() {
                return None;
            }
            let question = async {
                match &mut self.questions {
                    Some(questions) => questions.message().await,
                    None => std::future::pending().await,
                }
            };
            let question = tokio::select! {
                biased;
                Some(answer) = self.told.recv() => {
                    self.running.remove(&answer.number);
                    return Some(Ok(answer));
                }
                question = question => question,
            };
            match question {
                Ok(Some(question)) => {
                    if let Err(refusal) = self.take(question) {
                        self.end();
                        return Some(Err(refusal));
                    }
                }
                Ok(None) => self.questions = None,
                // The caller has disconnected.
                Err(_) => self.end(),
            }
        }
    }

    /// Receives a question, or the cancellation of one.
    fn take(&mut self, question: PeerQuestion) -> Result<(), Status> {
        let number = question.number;
        if question.body.is_empty() {
            self.waiting.retain(|question| question.number != number);
            self.running.remove(&number);
            return Ok(());
        }
        self.endpoint.accept(question.version, &self.headers, self.cluster)?;
        if question.body.len() > QUESTION_BYTES_MAX {
            return Err(Status::resource_exhausted("a question is too long for a shared stream"));
        }
        if self.waiting.len() >= WAITING_MAX {
            return Err(Status::unavailable("too many questions wait for their answers"));
        }
        self.waiting.push_back(question);
        Ok(())
    }

    /// Answers a question, or gives it a task.
    fn work(&mut self, question: PeerQuestion) -> Option<PeerAnswer> {
        let number = question.number;
        let mut answer = Box::pin(self.endpoint.answer(question));
        // The task polls it again, and is woken from then on.
        if let Some(answer) = (&mut answer).now_or_never() {
            return Some(answer);
        }
        let failed = A::failed(number);
        let mut reply = Reply { answer: Some(failed), tell: self.tell.clone() };
        let task = self.endpoint.env().spawn_request("question", async move {
            reply.answer = Some(answer.await);
            drop(reply);
        });
        self.running.insert(number, task);
        None
    }

    fn end(&mut self) {
        self.questions = None;
        self.waiting.clear();
        self.running.clear();
    }
}

/// The reply of a task. It is sent when the task ends, even by a panic.
struct Reply {
    /// The answer; an error until the work is done.
    answer: Option<PeerAnswer>,
    tell: mpsc::UnboundedSender<PeerAnswer>,
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(answer) = self.answer.take() {
            // The stream may have ended.
            let _ended = self.tell.send(answer);
        }
    }
}
