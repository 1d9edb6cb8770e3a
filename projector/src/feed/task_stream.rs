//! A stream whose messages a task sends. Dropping the stream, or all streams of one task, cancels
//! the task.

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
    /// Creates a stream of the messages that `task` sends.
    pub fn new(messages: ByteReceiver<Result<T>>, task: Task) -> Self {
        Self::shared(messages, Arc::new(task))
    }

    /// Creates a stream of the messages that `task` sends, in addition to other streams of the task.
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
