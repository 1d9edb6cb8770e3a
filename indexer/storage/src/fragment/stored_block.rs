//! A block as a file stores it: checksum, codec, bytes.

use std::cell::RefCell;

use proto::model::ids::Epoch;
use proto::{Error, Result};
use zstd::bulk::{Compressor, Decompressor};

use crate::fragment::compression::Compression;
use crate::fragment::format::corrupt;
use crate::rows::block::Block;

const PLAIN: u8 = 0;
const LZ4: u8 = 1;
const ZSTD: u8 = 2;
/// The bytes of the checksum and the codec.
const PLAIN_HEADER_BYTES: usize = 5;
/// Largest accepted compression ratio. A block with a higher ratio is stored uncompressed. So a
/// wrong length with a valid checksum cannot cause an allocation of more than a multiple of the
/// file.
const RATIO_MAX: usize = 1024;
/// The usual level of zstd: above it, writing slows down faster than blocks shrink.
const ZSTD_LEVEL: i32 = 3;

/// Encodes blocks for storage.
pub(super) struct Encoder {
    codec: Codec,
    /// A buffer for the compressed bytes, reused from block to block.
    packed: Vec<u8>,
}

/// The compressor of an encoder.
enum Codec {
    Plain,
    Lz4,
    Zstd(Compressor<'static>),
}

impl Encoder {
    pub fn new(compression: Compression) -> Result<Self> {
        let codec = match compression {
            Compression::None => Codec::Plain,
            Compression::Lz4 => Codec::Lz4,
            Compression::Zstd => Codec::Zstd(Compressor::new(ZSTD_LEVEL)?),
        };
        Ok(Self { codec, packed: Vec::new() })
    }

    /// Appends a block that will be stored at `offset`; `seed` is the header's checksum.
    pub fn append_block(
        &mut self,
        seed: u32,
        offset: u64,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let from = out.len();
        out.extend_from_slice(&[0; 4]);
        match self.compress(block)? {
            Some((codec, packed)) => {
                out.push(codec);
                // The length fits: `Block::parse` refuses blocks of 2 GiB and more.
                out.extend_from_slice(&(block.len() as u32).to_le_bytes());
                out.extend_from_slice(packed);
            }
            None => {
                out.push(PLAIN);
                out.extend_from_slice(block);
            }
        }
        let crc = checksum(seed, offset, &out[from + 4..]);
        out[from..from + 4].copy_from_slice(&crc.to_le_bytes());
        Ok(())
    }

    /// Returns the codec and the compressed block; `None` if the block should be stored plain,
    /// because compression saves too little or its ratio is above [`RATIO_MAX`].
    fn compress(&mut self, block: &[u8]) -> Result<Option<(u8, &[u8])>> {
        let room = match self.codec {
            Codec::Plain => return Ok(None),
            Codec::Lz4 => lz4_flex::block::get_maximum_output_size(block.len()),
            Codec::Zstd(_) => zstd::zstd_safe::compress_bound(block.len()),
        };
        if self.packed.len() < room {
            self.packed.resize(room, 0);
        }
        let (codec, len) = match &mut self.codec {
            Codec::Plain => return Ok(None),
            Codec::Lz4 => {
                let len = lz4_flex::block::compress_into(block, &mut self.packed)
                    .map_err(|error| Error::internal(format!("LZ4 compression failed: {error}")))?;
                (LZ4, len)
            }
            Codec::Zstd(zstd) => (ZSTD, zstd.compress_to_buffer(block, &mut self.packed[..])?),
        };
        let pays = len + 4 <= block.len() - block.len() / 8 && block.len() <= len * RATIO_MAX;
        Ok(pays.then(|| (codec, &self.packed[..len])))
    }
}

/// Appends a block that was read in stored form, with a new checksum for its new offset; `seed` is
/// the checksum of the new file's header.
pub(super) fn put_again(seed: u32, offset: u64, stored: &[u8], out: &mut Vec<u8>) {
    let content = stored.get(4..).unwrap_or_default();
    out.extend_from_slice(&checksum(seed, offset, content).to_le_bytes());
    out.extend_from_slice(content);
}

/// Returns the checksum of a stored block, which also covers its offset.
pub(super) fn checksum(seed: u32, offset: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &offset.to_le_bytes()), bytes)
}

thread_local! {
    /// One decompressor per thread, since its tables are larger than a block.
    static UNZSTD: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Decompresses a block with the thread's decompressor.
fn unzstd(packed: &[u8], out: &mut [u8]) -> std::io::Result<usize> {
    UNZSTD.with_borrow_mut(|zstd| {
        if zstd.is_none() {
            *zstd = Some(Decompressor::new()?);
        }
        match zstd {
            Some(zstd) => zstd.decompress_to_buffer(packed, out),
            None => Ok(0),
        }
    })
}

/// Checks and parses a block that is stored at `offset`; `seed` is the header's checksum. In a
/// stamped fragment, all rows get the fragment's epoch.
pub(super) fn decode(seed: u32, offset: u64, stored: &[u8], stamp: Option<Epoch>) -> Result<Block> {
    if stored.len() < PLAIN_HEADER_BYTES {
        return Err(corrupt("the stored length of the block is too small"));
    }
    let crc = u32::from_le_bytes([stored[0], stored[1], stored[2], stored[3]]);
    if crc != checksum(seed, offset, &stored[4..]) {
        return Err(corrupt("the checksum of the block does not match"));
    }
    let codec = codec(stored);
    let bytes: Box<[u8]> = match codec {
        PLAIN => stored[PLAIN_HEADER_BYTES..].into(),
        LZ4 | ZSTD => {
            let [_, _, _, _, _, a, b, c, d, packed @ ..] = stored else {
                return Err(corrupt("the stored length of the block is too small"));
            };
            let len = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
            if len > packed.len().saturating_mul(RATIO_MAX) {
                return Err(corrupt("the uncompressed length of the block is impossible"));
            }
            let mut bytes = vec![0; len].into_boxed_slice();
            let done = match codec {
                LZ4 => lz4_flex::block::decompress_into(packed, &mut bytes).ok(),
                _ => unzstd(packed, &mut bytes).ok(),
            };
            if done != Some(len) {
                return Err(corrupt("the block cannot be decompressed"));
            }
            bytes
        }
        _ => return Err(corrupt("the codec of the block is unknown")),
    };
    let mut block = Block::parse(bytes)?;
    stamp.map_or(Ok(()), |epoch| block.stamp(epoch))?;
    Ok(block)
}

/// Returns the compression of a stored block whose checksum was checked before.
pub(super) fn compression(stored: &[u8]) -> Compression {
    match codec(stored) {
        LZ4 => Compression::Lz4,
        ZSTD => Compression::Zstd,
        _ => Compression::None,
    }
}

fn codec(stored: &[u8]) -> u8 {
    stored[4]
}
