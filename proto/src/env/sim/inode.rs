//! The contents of a file, and the changes that a crash may lose.

use std::ops::Range;

/// The unit that a disk writes as a whole.
const SECTOR_BYTES: u64 = 512;

/// The contents of one file.
#[derive(Default)]
pub(super) struct Inode {
    /// The contents that programs see.
    pub(super) current: Vec<u8>,
    /// The contents that survive every crash.
    pub(super) durable: Vec<u8>,
    /// The changes from `durable` to `current`, in order.
    changes: Vec<Change>,
    /// The last bit that a fault has flipped.
    pub(super) flip: Option<Flip>,
}

/// A flipped bit of a file.
#[derive(Clone, Copy)]
pub(super) struct Flip {
    pub(super) byte: u64,
    pub(super) is_read: bool,
    /// True once a write has replaced the byte, or cut it off.
    pub(super) is_replaced: bool,
}

/// One change, of one sector at most.
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
    pub(super) fn change(&mut self, change: Change) {
        if let Some(flip) = &mut self.flip {
            flip.is_replaced |= change.replaces(flip.byte);
        }
        change.apply(&mut self.current);
        self.changes.push(change);
    }

    /// Notes that a program has read a range.
    pub(super) fn note_read(&mut self, range: Range<u64>) {
        if let Some(flip) = &mut self.flip {
            flip.is_read |= range.contains(&flip.byte);
        }
    }

    /// Writes, in pieces of one sector.
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
    }

    /// Keeps each change for which `keep` returns true and forgets the others.
    pub(super) fn crash(&mut self, keep: &mut impl FnMut() -> bool) {
        for change in self.changes.drain(..) {
            if keep() {
                change.apply(&mut self.durable);
            }
        }
        self.current.clone_from(&self.durable);
    }
}
