//! Remarks about a running statement. The session sends them to its client at once, as notices.

use tokio::sync::mpsc;

/// The maximum number of remarks in the queue for a slow client. Further remarks are dropped.
const WAITING_MAX: usize = 16;

/// A remark about a running statement, which the client gets as a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The message of the remark.
    pub message: String,
    /// The advice to the client.
    pub hint: Option<&'static str>,
}

/// The sender of remarks, which the code of a running statement uses.
#[derive(Clone, Debug)]
pub struct Remarks(Option<mpsc::Sender<Remark>>);

/// The receiver of remarks, which the session of the statement uses.
#[derive(Debug)]
pub struct RemarkReceiver(mpsc::Receiver<Remark>);

impl Remarks {
    /// Returns a channel of remarks: the sender and the receiver.
    pub fn channel() -> (Self, RemarkReceiver) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self(Some(sender)), RemarkReceiver(receiver))
    }

    /// Returns a sender that drops all remarks.
    pub fn unread() -> Self {
        Self(None)
    }

    /// Sends a remark.
    pub fn send(&self, message: String, hint: Option<&'static str>) {
        if let Some(sender) = &self.0 {
            // If the client does not read its remarks, it does not matter that one is lost.
            let _ = sender.try_send(Remark { message, hint });
        }
    }
}

impl RemarkReceiver {
    /// Waits for the next remark. If the future is dropped, no remark is lost.
    pub async fn next(&mut self) -> Remark {
        match self.0.recv().await {
            Some(remark) => remark,
            None => std::future::pending().await,
        }
    }

    /// Returns the next remark if there is one. Does not wait.
    pub fn next_now(&mut self) -> Option<Remark> {
        self.0.try_recv().ok()
    }
}
