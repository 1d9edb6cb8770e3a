//! The contents of a simulated file, and the changes that a crash may lose.

use std::ops::Range;

/// The number of bytes that a disk writes atomically.
const SECTOR_BYTES: u64 = 512;

/// The contents of one file.
#[derive(Default)]
pub(super) struct Inode {
    /// The contents that programs read.
    pub(super) current: Vec<u8>,
    /// The contents that survive every crash.
    pub(super) durable: Vec<u8>,
    /// The changes from `durable` to `current`, in order.
    changes: Vec<Change>,
    /// The bits that faults have flipped.
    pub(super) flips: Vec<Flip>,
}

/// A flipped bit of a file.
#[derive(Clone, Copy, Default)]
pub(super) struct Flip {
    pub(super) byte: u64,
    /// A mask with the flipped bit of the byte.
    pub(super) mask: u8,
    pub(super) is_read: bool,
    /// True if a write has replaced the byte, or a truncation has removed it.
    pub(super) is_replaced: bool,
    /// True if a crash cannot undo the replacement.
    pub(super) is_replaced_durably: bool,
}

/// One change of at most one sector.
pub(super) enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    SetLen(u64),
}

impl Change {
    fn replaces(&self, byte: u64) -> bool {
        match self {
            Change::SetLen(len) => *len <= byte,
            Change::Write { offset, bytes } => {
                (*offset..*offset + bytes.len() as u64).contains(&byte)
            }
        }
    }

    fn apply(&self, contents: &mut Vec<u8>) {
        match self {
            Change::SetLen(len) => contents.resize(*len as usize, 0),
            Change::Write { offset, bytes } => {
                let start = *offset as usize;
                let end = start + bytes.len();
                if contents.len() < end {
                    contents.resize(end, 0);
                }
                contents[start..end].copy_from_slice(bytes);
            }
        }
    }
}

impl Inode {
    /// Creates a file with these contents, which are durable.
    pub(super) fn durable(contents: &[u8]) -> Self {
        let (current, durable) = (contents.to_vec(), contents.to_vec());
        Self { current, durable, ..Self::default() }
    }

    /// Flips back the bits whose bytes no write has replaced, and forgets all flipped bits.
    pub(super) fn flip_back(&mut self) {
        for flip in std::mem::take(&mut self.flips).iter().filter(|flip| !flip.is_replaced) {
            for contents in [&mut self.current, &mut self.durable] {
                if let Some(value) = contents.get_mut(flip.byte as usize) {
                    *value ^= flip.mask;
                }
            }
        }
    }

    pub(super) fn change(&mut self, change: Change) {
        self.flips.iter_mut().for_each(|flip| flip.is_replaced |= change.replaces(flip.byte));
        change.apply(&mut self.current);
        self.changes.push(change);
    }

    /// Records that a program has read a range of bytes.
    pub(super) fn note_read(&mut self, range: Range<u64>) {
        self.flips.iter_mut().for_each(|flip| flip.is_read |= range.contains(&flip.byte));
    }

    /// Writes bytes, as changes of at most one sector each.
    pub(super) fn write(&mut self, buf: &[u8], offset: u64) {
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let room = (SECTOR_BYTES - at % SECTOR_BYTES) as usize;
            let end = buf.len().min(done + room);
            self.change(Change::Write { offset: at, bytes: buf[done..end].to_vec() });
            done = end;
        }
    }

    /// Makes all changes durable.
    pub(super) fn sync(&mut self) {
        for change in self.changes.drain(..) {
            change.apply(&mut self.durable);
        }
        self.flips.iter_mut().for_each(|flip| flip.is_replaced_durably = flip.is_replaced);
    }

    /// Applies a crash: keeps each change for which `keep` returns true, and drops the others.
    pub(super) fn crash(&mut self, keep: &mut impl FnMut() -> bool) {
        for change in self.changes.drain(..) {
            if keep() {
                change.apply(&mut self.durable);
                for flip in &mut self.flips {
                    flip.is_replaced_durably |= change.replaces(flip.byte);
                }
            }
        }
        self.flips.iter_mut().for_each(|flip| flip.is_replaced = flip.is_replaced_durably);
        self.current.clone_from(&self.durable);
    }
}
