//! Decodes messages of the client. The decoders of the library `pgwire` trust the counts inside a
//! message, so the structure of a message is checked before they run.

use bytes::{Buf, BytesMut};
use pgwire::messages::{DecodeContext, PgWireFrontendMessage, ProtocolVersion};

use super::error::{WireError, WireResult};

/// The maximum size of a message with its header, in bytes. It allows documents of a few
/// megabytes, but a wrong length cannot make the server allocate a gigabyte.
pub(in crate::pg) const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The size of a message's header, in bytes: one for the type, four for the length.
pub(super) const HEADER_BYTES: usize = 5;

/// Decodes a header. Returns the message's type, and the number of bytes after the header.
pub(super) fn header(bytes: [u8; HEADER_BYTES]) -> WireResult<(u8, usize)> {
    let [kind, length @ ..] = bytes;
    let length = u32::from_be_bytes(length) as usize;
    match length.checked_sub(4) {
        Some(body) if length <= i32::MAX as usize => Ok((kind, body)),
        _ => Err(WireError::protocol(format!("a message has the invalid length {length}"))),
    }
}

/// Decodes one complete message, including its header.
pub(in crate::pg) fn decode(mut bytes: BytesMut) -> WireResult<PgWireFrontendMessage> {
    let kind = bytes[0];
    if !BodyChecker::is_valid(&bytes[HEADER_BYTES..], kind) {
        let kind = char::from(kind).escape_default();
        return Err(WireError::protocol(format!("a malformed message of type {kind}")));
    }
    let mut context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
    context.awaiting_frontend_ssl = false;
    context.awaiting_frontend_startup = false;
    match PgWireFrontendMessage::decode(&mut bytes, &context) {
        Ok(Some(message)) => Ok(message),
        Ok(None) => Err(WireError::protocol("a message is shorter than its contents")),
        Err(error) => Err(WireError::protocol(error.to_string())),
    }
}

/// A checker of the structure of a message's body. The field contains the bytes that are still to
/// be checked.
struct BodyChecker<'a>(&'a [u8]);

impl<'a> BodyChecker<'a> {
    /// Returns true if the body of a message has the structure that the decoder of its type
    /// expects.
    fn is_valid(body: &'a [u8], kind: u8) -> bool {
        let mut shape = BodyChecker(body);
        let fits = match kind {
            b'Q' | b'f' => shape.skip_text(),
            b'P' => shape.skip_text().and(shape.skip_text()).and(shape.skip_items(4)),
            b'B' => {
                shape.skip_text().and(shape.skip_text()).and(shape.skip_items(2)).and_then(|()| {
                    let values = shape.count()?;
                    (0..values).try_for_each(|_| shape.skip_value())?;
                    shape.skip_items(2)
                })
            }
            b'C' | b'D' => shape.skip(1).and(shape.skip_text()),
            b'E' => shape.skip_text().and(shape.skip(4)),
            b'd' | b'p' => return true,
            b'H' | b'S' | b'X' | b'c' => Some(()),
            _ => None,
        };
        fits.is_some() && shape.0.is_empty()
    }

    /// Skips a number of bytes; `None` if there are fewer.
    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    /// Skips a UTF-8 text and the NUL after it; `None` if there is no such text.
    fn skip_text(&mut self) -> Option<()> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&self.0[..end]).ok()?;
        self.skip(end + 1)
    }

    /// Reads a count of two bytes; `None` if it is incomplete.
    fn count(&mut self) -> Option<usize> {
        let mut head = self.0.get(..2)?;
        self.skip(2)?;
        Some(usize::from(head.get_u16()))
    }

    /// Skips a count and as many items of a fixed size; `None` if they are incomplete.
    fn skip_items(&mut self, item_bytes: usize) -> Option<()> {
        let count = self.count()?;
        self.skip(count * item_bytes)
    }

    /// Skips a value of a Bind message: its length (negative for NULL), then its bytes. Returns
    /// `None` if the value is incomplete.
    fn skip_value(&mut self) -> Option<()> {
        let mut head = self.0.get(..4)?;
        self.skip(4)?;
        match head.get_i32() {
            length if length >= 0 => self.skip(length as usize),
            _ => Some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> BytesMut {
        let mut bytes = BytesMut::from(&[kind][..]);
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn whole_messages_are_decoded_and_truncated_ones_are_refused() {
        let good: [(u8, &[u8]); 8] = [
            (b'Q', b"SELECT 1\0"),
            (b'P', b"s\0SELECT $1\0\0\x01\0\0\0\x14"),
            (b'B', b"p\0s\0\0\x01\0\0\0\x01\0\0\0\x01x\0\x01\0\0"),
            (b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xff\0\0"),
            (b'D', b"Ss\0"),
            (b'E', b"p\0\0\0\0\x05"),
            (b'S', b""),
            (b'd', b"anything"),
        ];
        for (kind, body) in good {
            decode(message(kind, body)).unwrap_or_else(|e| panic!("{body:?}: {e:?}"));
            for cut in 0..body.len() {
                if kind != b'd' {
                    assert!(decode(message(kind, &body[..cut])).is_err(), "{kind} cut at {cut}");
                }
            }
            if kind != b'd' {
                let longer = [body, b"x"].concat();
                assert!(decode(message(kind, &longer)).is_err(), "{kind} with more");
            }
        }
        assert!(decode(message(b'Q', b"\xff\0")).is_err(), "not UTF-8");
        assert!(decode(message(b'!', b"")).is_err(), "no such type");
        assert!(header(*b"Q\0\0\0\x03").is_err(), "shorter than its own length");
    }
}
