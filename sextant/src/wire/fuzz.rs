//! Entry point for fuzzers of messages from other processes. It decodes the arguments and the
//! answers of each method.

use std::marker::PhantomData;

use proto::Result;

use super::codec::{decode, encode, split_method};
use super::methods::*;
use super::versions::ProtocolVersions;

/// The smallest first byte that stands for an item of a stream.
const STREAMS_FROM: u8 = 0x80;

/// The decoders for the messages of a service.
struct Messages<T: ?Sized>(PhantomData<T>);

macro_rules! decode_methods {
    (
        $api:ident, $local:ident;
        calls { $(
            $number:literal $name:ident($($argument:ident: $type:ty),*) -> $answer:ty
            , for $($caller:ident)+ $(, claims $claims:ident)? $(, checked by $check_answer:ident)? $(, via $($via:ident)+)?;
        )* }
        streams { $(
            $stream_number:literal $stream:ident($($stream_argument:ident: $stream_type:ty),*)
            -> $item:ty, for $($stream_caller:ident)+ $(, claims $stream_claims:ident)? $(, checked by $check:ident)? $(, via $($stream_via:ident)+)?;
        )* }
    ) => {
        impl Messages<dyn $api> {
            /// Decodes a message of a call.
            fn call(number: u32, is_answer: bool, bytes: &[u8]) {
                match (number, is_answer) {
                    $(
                        ($number, false) => encode_again(decode::<($($type,)*)>(bytes)),
                        ($number, true) => encode_again(decode::<Result<$answer>>(bytes)),
                    )*
                    _ => {}
                }
            }

            /// Decodes a message of a stream.
            fn stream(number: u32, is_answer: bool, bytes: &[u8]) {
                match (number, is_answer) {
                    $(
                        ($stream_number, false) => encode_again(decode::<($($stream_type,)*)>(bytes)),
                        ($stream_number, true) => encode_again(decode::<Result<$item>>(bytes)),
                    )*
                    _ => {}
                }
            }
        }
    };
}

coordinator_methods!(decode_methods);
projector_methods!(decode_methods);
indexer_methods!(decode_methods);

/// Encodes a decoded value again, which must succeed.
fn encode_again<T: serde::Serialize>(read: Result<T>) {
    if let Ok(value) = read {
        encode(&value).expect("a value that was read can be encoded");
    }
}

/// Decodes a message between services. The first byte tells whether the message belongs to a call
/// or to a stream, and whether it is a request or an answer. The number of the method and the
/// contents follow.
pub fn message(data: &[u8]) {
    let Some((&kind, message)) = data.split_first() else { return };
    if let Ok(text) = std::str::from_utf8(message) {
        let _ = text.parse::<ProtocolVersions>();
    }
    let Ok((number, bytes)) = split_method(message) else { return };
    let is_answer = kind & 1 == 1;
    let services = match kind < STREAMS_FROM {
        true => [
            <Messages<dyn CoordinatorApi>>::call,
            <Messages<dyn ProjectorApi>>::call,
            <Messages<dyn IndexerApi>>::call,
        ],
        false => [
            <Messages<dyn CoordinatorApi>>::stream,
            <Messages<dyn ProjectorApi>>::stream,
            <Messages<dyn IndexerApi>>::stream,
        ],
    };
    services.iter().for_each(|decode| decode(number, is_answer, bytes));
}
