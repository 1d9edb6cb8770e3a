//! Remarks about a statement that is running, which the session sends to its client at once, as
//! notices.

use tokio::sync::mpsc;

/// The maximum number of remarks that wait for a slow client; further ones are dropped.
const WAITING_MAX: usize = 16;

/// A remark about a statement, which the client gets as a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The message of the remark.
    pub message: String,
    /// The advice to the client.
    pub hint: Option<&'static str>,
}

/// The sender of remarks, for the code that runs a statement.
#[derive(Clone, Debug)]
pub struct Remarks(Option<mpsc::Sender<Remark>>);

/// The receiver of remarks, for the session of a statement.
#[derive(Debug)]
pub struct RemarkSink(mpsc::Receiver<Remark>);

impl Remarks {
    /// Returns a channel of remarks: the sender and the receiver.
    pub fn channel() -> (Self, RemarkSink) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self(Some(sender)), RemarkSink(receiver))
    }

    /// Returns a sender whose remarks are dropped.
    pub fn unread() -> Self {
        Self(None)
    }

    /// Sends a remark.
    pub fn tell(&self, message: String, hint: Option<&'static str>) {
        if let Some(sender) = &self.0 {
            // A remark more or less does not matter to a client that does not read them.
            let _ = sender.try_send(Remark { message, hint });
        }
    }
}

impl RemarkSink {
    /// Waits for the next remark. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Remark {
        match self.0.recv().await {
            Some(remark) => remark,
            None => std::future::pending().await,
        }
    }

    /// Returns the next remark without waiting, if there is one.
    pub fn next_now(&mut self) -> Option<Remark> {
        self.0.try_recv().ok()
    }
}
