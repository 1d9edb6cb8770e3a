//! A stream of the messages that a background task sends. Several streams may belong to one task.
//! The task is cancelled when all its streams were dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use proto::Result;
use proto::env::Task;
use proto::flow::ByteReceiver;

/// A stream of the messages that a task sends.
pub struct TaskStream<T> {
    messages: ByteReceiver<Result<T>>,
    _task: Arc<Task>,
}

impl<T> TaskStream<T> {
    /// Creates a stream of the messages that `task` sends. Dropping the stream cancels the task.
    pub fn new(messages: ByteReceiver<Result<T>>, task: Task) -> Self {
        Self::shared(messages, Arc::new(task))
    }

    /// Creates one of several streams of messages that `task` sends. Dropping all of them cancels
    /// the task.
    pub fn shared(messages: ByteReceiver<Result<T>>, task: Arc<Task>) -> Self {
        Self { messages, _task: task }
    }
}

impl<T> Stream for TaskStream<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.messages).poll_next(cx)
    }
}
