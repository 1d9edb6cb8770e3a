//! A channel that is bounded by the bytes of its items instead of their number. A sender waits
//! until the next item fits within the limit. An item larger than the limit is sent when the
//! channel is empty. Each item counts as at least the unit of [`Budget`], so that the number of
//! small items is bounded too.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use tokio::sync::mpsc;

use super::budget::{Budget, Reservation};

/// The sending end, which waits when the channel is full.
pub struct ByteSender<T> {
    items: mpsc::UnboundedSender<(T, Reservation)>,
    room: Budget,
}

/// The receiving end; each received item frees its bytes for the sender.
pub struct ByteReceiver<T> {
    items: mpsc::UnboundedReceiver<(T, Reservation)>,
}

/// The error of a send after the receiver was dropped; the item is dropped too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverGone;

/// Creates a channel that contains at most about `bytes_max` bytes.
pub fn byte_channel<T>(bytes_max: usize) -> (ByteSender<T>, ByteReceiver<T>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (ByteSender { items: sender, room: Budget::new(bytes_max) }, ByteReceiver { items: receiver })
}

impl<T> ByteSender<T> {
    /// Waits until `bytes` bytes of the channel are free, and sends an item of that size.
    pub async fn send(&self, item: T, bytes: usize) -> Result<(), ReceiverGone> {
        let room = match self.room.try_reserve(bytes) {
            Some(room) => room,
            None => tokio::select! {
                biased;
                () = self.items.closed() => return Err(ReceiverGone),
                room = self.room.reserve(bytes) => room,
            },
        };
        self.items.send((item, room)).map_err(|_| ReceiverGone)
    }

    /// Waits until the receiver is dropped.
    pub async fn closed(&self) {
        self.items.closed().await;
    }
}

impl<T> ByteReceiver<T> {
    /// Receives the next item; `None` when all were received and the sender is dropped.
    pub async fn recv(&mut self) -> Option<T> {
        self.items.recv().await.map(|(item, _room)| item)
    }
}

impl<T> Stream for ByteReceiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.items.poll_recv(cx).map(|next| next.map(|(item, _room)| item))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_sender_waits_while_the_channel_is_full_of_bytes() {
        let (sender, mut receiver) = byte_channel(4096);
        sender.send(1, 3000).await.unwrap();
        let mut second = Box::pin(sender.send(2, 3000));
        assert!(second.as_mut().now_or_never().is_none(), "the first one is still there");
        assert_eq!(receiver.recv().await, Some(1));
        second.await.unwrap();
        assert_eq!(receiver.recv().await, Some(2));
    }

    #[tokio::test]
    async fn large_items_pass_alone_and_small_ones_count() {
        let (sender, mut receiver) = byte_channel(4096);
        sender.send(0, 1 << 30).await.unwrap();
        assert!(sender.send(1, 1).now_or_never().is_none(), "the message is alone");
        assert_eq!(receiver.recv().await, Some(0));
        let sent = (0..100).take_while(|n| sender.send(*n, 0).now_or_never().is_some()).count();
        assert_eq!(sent, 4, "a unit each");
    }

    #[tokio::test]
    async fn a_waiting_sender_learns_that_its_receiver_is_gone() {
        let (sender, receiver) = byte_channel(1024);
        sender.send(0, 1024).await.unwrap();
        let waiting = sender.send(1, 1024);
        drop(receiver);
        let told = timeout(Duration::from_secs(5), waiting).await;
        assert_eq!(told, Ok(Err(ReceiverGone)));
        assert_eq!(sender.send(2, 1).await, Err(ReceiverGone));
    }
}
