//! The client of services in other processes, over gRPC.

use async_trait::async_trait;
use futures::StreamExt;
use proto::grpc::PeerRequest;
use proto::grpc::peer_client::PeerClient;
use proto::rpc::api::PEER_MESSAGE_BYTES_MAX;
use proto::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tonic::transport::Channel;

use super::codec::{PROTOCOL_VERSION, decode, encode};
use super::methods::*;

/// A service of any role in another process.
#[derive(Clone)]
pub(super) struct Remote {
    node: NodeId,
    address: Arc<str>,
    client: Result<PeerClient<Channel>>,
}

impl Remote {
    /// The service of a node at an address.
    pub fn new(node: NodeId, address: &str, channel: Result<Channel>) -> Self {
        let channel = channel.map_err(|error| error.context(format!("node {node} at {address}")));
        let client = channel.map(|channel| {
            PeerClient::new(channel)
                .max_decoding_message_size(PEER_MESSAGE_BYTES_MAX)
                .max_encoding_message_size(PEER_MESSAGE_BYTES_MAX)
        });
        Self { node, address: address.into(), client }
    }

    fn request(&self, number: u32, arguments: impl Serialize) -> Result<PeerRequest> {
        let body = encode(&(number, arguments))?;
        Ok(PeerRequest { version: PROTOCOL_VERSION, node: self.node.0, body })
    }

    /// Turns a gRPC status into an error. A message that is too large stays too large; anything else may pass, so the caller
    /// may retry.
    fn unreachable(&self, status: tonic::Status) -> Error {
        let message = format!("node {} at {}: {}", self.node, self.address, status.message());
        match status.code() {
            tonic::Code::OutOfRange | tonic::Code::ResourceExhausted => {
                Error::new(proto::ErrorCode::OverLimit, message)
            }
            _ => Error::unavailable(message),
        }
    }

    async fn call<T: DeserializeOwned>(&self, number: u32, arguments: impl Serialize) -> Result<T> {
        let request = self.request(number, arguments)?;
        let reply = self.client.clone()?.call(request).await.map_err(|s| self.unreachable(s))?;
        decode::<Result<T>>(&reply.into_inner().body)?
    }

    async fn open<T: DeserializeOwned + Send + 'static>(
        &self,
        number: u32,
        arguments: impl Serialize,
    ) -> Result<ResultStream<T>> {
        let request = self.request(number, arguments)?;
        let replies = self.client.clone()?.open(request).await.map_err(|s| self.unreachable(s))?;
        let mut replies = replies.into_inner();
        let node = self.clone();
        // The first reply says whether the stream was opened.
        match replies.message().await.map_err(|s| node.unreachable(s))? {
            Some(first) => decode::<Result<()>>(&first.body)??,
            None => {
                return Err(Error::unavailable(format!("node {} closed the stream", self.node)));
            }
        }
        Ok(Box::pin(replies.map(move |reply| {
            let reply = reply.map_err(|status| node.unreachable(status))?;
            decode::<Result<T>>(&reply.body)?
        })))
    }
}

/// Checks the blocks of a scan here, because they are read in place later.
fn check_rows(batches: ResultStream<ShardBatch>) -> ResultStream<ShardBatch> {
    Box::pin(batches.map(|batch| {
        let batch = batch?;
        if let ShardBatch::Rows(block) = &batch {
            block.validate()?;
        }
        Ok(batch)
    }))
}

macro_rules! call_remote {
    (
        $api:ident, $local:ident;
        calls { $(
            $number:literal $name:ident($($argument:ident: $type:ty),*) -> $answer:ty
            $(, via $($via:ident)+)?;
        )* }
        streams { $(
            $stream_number:literal $stream:ident($($stream_argument:ident: $stream_type:ty),*)
            -> $item:ty $(, checked by $check:ident)? $(, via $($stream_via:ident)+)?;
        )* }
    ) => {
        #[async_trait]
        impl $api for Remote {
            $(async fn $name(&self, $($argument: $type),*) -> Result<$answer> {
                self.call($number, ($($argument,)*)).await
            })*
            $(async fn $stream(&self, $($stream_argument: $stream_type),*)
                -> Result<ResultStream<$item>>
            {
                let items = self.open($stream_number, ($($stream_argument,)*)).await?;
                $(let items = $check(items);)?
                Ok(items)
            })*
        }
    };
}

coordinator_methods!(call_remote);
projector_methods!(call_remote);
indexer_methods!(call_remote);

#[cfg(test)]
mod tests {
    use super::*;

    /// Postcard writes an enum as its variant's number, then the fields. Requests used to be such enums, so the number and
    /// the arguments of a method must have the same bytes.
    #[test]
    fn a_request_has_the_encoding_of_an_enum() {
        #[derive(Serialize)]
        #[allow(dead_code)]
        enum Call {
            Propose(u8),
            Get(BucketId, Vec<String>),
            Status,
        }
        let remote = Remote::new(NodeId(1), "", Err(Error::unavailable("nowhere")));
        let ids = || (BucketId(300), vec!["a".to_owned(), String::new()]);
        let body = |number, arguments: (BucketId, Vec<String>)| {
            remote.request(number, arguments).expect("encoded").body
        };
        let (bucket, names) = ids();
        assert_eq!(body(1, ids()), encode(&Call::Get(bucket, names)).expect("encoded"));
        let status = remote.request(2, ()).expect("encoded").body;
        assert_eq!(status, encode(&Call::Status).expect("encoded"));
    }
}
