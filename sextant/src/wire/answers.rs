//! The answers to the questions of one shared stream (`questions`).
//!
//! The task of the stream works on the questions itself, several at a time as far as they wait. So a question costs no task and no
//! change of threads. Questions are short reads, and a process has several streams, so none of them holds the others up for long.

use std::collections::BTreeMap;
use std::pin::Pin;

use futures::future::{AbortHandle, Abortable, Aborted};
use futures::stream::FuturesUnordered;
use futures::{Stream, StreamExt, stream};
use proto::grpc::{PeerAnswer, PeerQuestion};
use proto::model::identity::ClusterId;
use tonic::metadata::MetadataMap;
use tonic::{Status, Streaming};

/// Questions of one stream that are worked on at a time; further ones wait in the caller's window.
const RUNNING_MAX: usize = 256;

/// The answers of a stream.
pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<PeerAnswer, Status>> + Send>>;

/// Answers questions.
pub(super) trait Answer: Send + Sync + 'static {
    /// Checks that a question may be answered: its protocol version, and the headers and the cluster of its stream.
    fn accept(
        &self,
        version: u32,
        headers: &MetadataMap,
        cluster: Option<ClusterId>,
    ) -> Result<(), Status>;

    /// Answers a question.
    fn answer(&self, question: PeerQuestion) -> impl Future<Output = PeerAnswer> + Send + 'static;
}

/// Answers the questions of a stream with these headers.
pub(super) fn answers<A: Answer>(
    endpoint: A,
    headers: MetadataMap,
    cluster: Option<ClusterId>,
    questions: Streaming<PeerQuestion>,
) -> Answers {
    let (running, taken_back) = (FuturesUnordered::new(), BTreeMap::new());
    let begun =
        Answering { endpoint, headers, cluster, questions: Some(questions), running, taken_back };
    Box::pin(stream::unfold(begun, |mut answering| async move {
        let answer = answering.next().await?;
        Some((answer, answering))
    }))
}

type Running = Pin<Box<dyn Future<Output = (u64, Result<PeerAnswer, Aborted>)> + Send>>;

struct Answering<A> {
    endpoint: A,
    headers: MetadataMap,
    cluster: Option<ClusterId>,
    /// `None` behind the last one.
    questions: Option<Streaming<PeerQuestion>>,
    running: FuturesUnordered<Running>,
    /// Ends the work on a question, by its number.
    taken_back: BTreeMap<u64, AbortHandle>,
}

impl<A: Answer> Answering<A> {
    /// The next answer. After an error the stream ends.
    async fn next(&mut self) -> Option<Result<PeerAnswer, Status>> {
        loop {
            if self.questions.is_none() && self.running.is_empty() {
                return None;
            }
            let may_begin = self.running.len() < RUNNING_MAX;
            let questions = self.questions.as_mut().filter(|_| may_begin);
            let question = async {
                match questions {
                    Some(questions) => questions.message().await,
                    None => std::future::pending().await,
                }
            };
            let question = tokio::select! {
                biased;
                Some((number, answer)) = self.running.next() => {
                    self.taken_back.remove(&number);
                    match answer {
                        Ok(answer) => return Some(Ok(answer)),
                        Err(Aborted) => continue,
                    }
                }
                question = question => question,
            };
            match question {
                Ok(Some(question)) => {
                    if let Err(refusal) = self.begin(question) {
                        self.end();
                        return Some(Err(refusal));
                    }
                }
                Ok(None) => self.questions = None,
                // The caller is gone.
                Err(_) => self.end(),
            }
        }
    }

    fn begin(&mut self, question: PeerQuestion) -> Result<(), Status> {
        let number = question.number;
        if question.body.is_empty() {
            if let Some(running) = self.taken_back.get(&number) {
                running.abort();
            }
            return Ok(());
        }
        self.endpoint.accept(question.version, &self.headers, self.cluster)?;
        let (abort, aborted) = AbortHandle::new_pair();
        self.taken_back.insert(number, abort);
        let answer = Abortable::new(self.endpoint.answer(question), aborted);
        self.running.push(Box::pin(async move { (number, answer.await) }));
        Ok(())
    }

    fn end(&mut self) {
        self.questions = None;
        self.running.clear();
    }
}
