//! Remarks on a statement while it runs: a session sends them to its client at once, as notices.

use tokio::sync::mpsc;

/// The number of remarks that may wait for a slow client; further ones are left out.
const WAITING_MAX: usize = 16;

/// A remark on a statement, sent to the client as a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The message of the remark.
    pub message: String,
    /// The advice.
    pub hint: Option<&'static str>,
}

/// Takes the remarks of a statement.
#[derive(Clone, Debug)]
pub struct Remarks(Option<mpsc::Sender<Remark>>);

/// Gives the remarks of a statement to its session.
#[derive(Debug)]
pub struct RemarkSink(mpsc::Receiver<Remark>);

impl Remarks {
    /// A channel of remarks with its reader.
    pub fn channel() -> (Self, RemarkSink) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self(Some(sender)), RemarkSink(receiver))
    }

    /// A channel of remarks without a reader.
    pub fn unread() -> Self {
        Self(None)
    }

    /// Makes a remark.
    pub fn tell(&self, message: String, hint: Option<&'static str>) {
        if let Some(sender) = &self.0 {
            // A remark more or less does not matter to a client that does not read them.
            let _ = sender.try_send(Remark { message, hint });
        }
    }
}

impl RemarkSink {
    /// Waits for the next remark. Nothing is lost if the call is dropped.
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
