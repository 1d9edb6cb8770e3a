//! Answers the questions that arrive on a shared stream. Questions are short requests of another
//! process (`questions`).
//!
//! The task of the stream starts to answer a question at once, and usually finishes: a read of
//! blocks in memory does not wait, and needs no other task or thread. A question that must wait
//! for an epoch, a permit or the disk gets a separate task. It is then not delayed by later
//! questions, or by a caller that reads no answers, and releases its permit in time.
//!
//! At most [`RUNNING_MAX`] questions of a stream have a separate task. Further questions wait in
//! a queue. A caller can cancel them there too.

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

/// The maximum number of questions of one stream that have a separate task.
const RUNNING_MAX: usize = 256;
/// The maximum number of questions of one stream in the queue for a task. If there are more, the
/// stream is closed.
const WAITING_MAX: usize = 4_096;

/// A stream of answers.
pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<PeerAnswer, Status>> + Send>>;

/// A service that answers the questions of one stream.
pub(super) trait QuestionService: Send + Sync + 'static {
    /// Returns the environment, in which the tasks of waiting questions run.
    fn env(&self) -> &Env;

    /// Returns an error unless a question may be answered. This depends on its protocol version,
    /// and on the headers and the cluster of its stream.
    fn accept(
        &self,
        version: u32,
        headers: &MetadataMap,
        cluster: Option<ClusterId>,
    ) -> Result<(), Status>;

    /// Answers a question.
    fn answer(&self, question: PeerQuestion) -> impl Future<Output = PeerAnswer> + Send + 'static;

    /// Returns the answer to a question whose task has panicked.
    fn failed(number: u64) -> PeerAnswer;
}

/// Returns the stream of answers to the questions of a stream with these headers.
pub(super) fn answers<A: QuestionService>(
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

/// The questions of one stream and their answers.
struct LaneAnswers<A> {
    endpoint: A,
    headers: MetadataMap,
    cluster: Option<ClusterId>,
    /// The questions that arrive; `None` after the last one.
    questions: Option<Streaming<PeerQuestion>>,
    /// The questions that wait for a separate task, in the order of their arrival.
    waiting: VecDeque<PeerQuestion>,
    /// The tasks by the number of their question.
    running: BTreeMap<u64, Task>,
    /// The sender of answers, for the separate tasks. Each task sends only one answer, so the
    /// channel needs no limit.
    tell: mpsc::UnboundedSender<PeerAnswer>,
    told: mpsc::UnboundedReceiver<PeerAnswer>,
}

impl<A: QuestionService> LaneAnswers<A> {
    /// Returns the next answer. After an error the stream ends.
    async fn next(&mut self) -> Option<Result<PeerAnswer, Status>> {
        loop {
            while self.running.len() < RUNNING_MAX
                && let Some(question) = self.waiting.pop_front()
            {
                if let Some(answer) = self.answer_or_spawn(question) {
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
                    if let Err(refusal) = self.handle_message(question) {
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

    /// Starts to answer a question, or cancels a question.
    fn handle_message(&mut self, question: PeerQuestion) -> Result<(), Status> {
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

    /// Answers a question if this needs no wait. Otherwise starts a separate task for it and
    /// returns `None`.
    fn answer_or_spawn(&mut self, question: PeerQuestion) -> Option<PeerAnswer> {
        let number = question.number;
        let mut answer = Box::pin(self.endpoint.answer(question));
        // The task polls it again, and is woken from then on.
        if let Some(answer) = (&mut answer).now_or_never() {
            return Some(answer);
        }
        let failed = A::failed(number);
        let mut reply = AnswerOnDrop { answer: Some(failed), tell: self.tell.clone() };
        let task = self.endpoint.env().spawn_request("question", async move {
            reply.answer = Some(answer.await);
            drop(reply);
        });
        self.running.insert(number, task);
        None
    }

    /// Drops all questions and their tasks.
    fn end(&mut self) {
        self.questions = None;
        self.waiting.clear();
        self.running.clear();
    }
}

/// The answer of a separate task. It is sent when this value is dropped, and so even after a
/// panic.
struct AnswerOnDrop {
    /// The answer. Until the work is done, it is the result of [`Answer::failed`].
    answer: Option<PeerAnswer>,
    tell: mpsc::UnboundedSender<PeerAnswer>,
}

impl Drop for AnswerOnDrop {
    fn drop(&mut self) {
        if let Some(answer) = self.answer.take() {
            // The stream may have ended.
            let _ended = self.tell.send(answer);
        }
    }
}
