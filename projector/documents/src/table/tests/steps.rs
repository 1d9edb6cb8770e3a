//! The steps of histories, and the counters of their effects.

/// A step of a history; its numbers choose among the possible variants.
#[derive(Clone, Debug)]
pub enum Step {
    /// Mutations in one batch: id and length of the document; a length of `None` is a deletion.
    Write(Vec<(u32, Option<u16>)>),
    /// Rewinds some vbuckets, each by a number of seqnos, but not below its floor.
    Rewind(Vec<(u16, u64)>),
    /// Removes a vbucket. Then a copy of it is added: its purge point, and documents in any order.
    Replace(u16, Vec<u32>),
    /// Raises the floor of a vbucket.
    Raise(u16, u64),
    /// Prepares a change, runs some further steps, and then installs or drops the change.
    Change(Kind, usize, Fate),
    /// Opens a walk, now or as of a cut, optionally after an id.
    Walk(Option<u64>, Option<u32>),
    /// Reads some bytes of an open walk.
    Read(usize, usize),
    /// Compares reads of single ids, now and as of a cut.
    Check(u64),
    /// Closes and opens the table without a crash. Changes in progress are dropped.
    Reopen,
    /// Crashes the machine, immediately or at a later file operation.
    Crash(u64),
}

/// Kind of a change.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Flush,
    Merge,
    FullMerge,
    /// A merge of some neighbouring fragments; the number chooses them.
    Neighbours(u64),
}

/// The outcome of a prepared change.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    Installed,
    Dropped,
    /// The write of the manifest fails, although the manifest is on disk.
    FailedAndWritten,
    /// The write of the manifest fails, and the old one is on disk.
    Failed,
}

/// Counters of the events in histories.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    pub flushes: u64,
    pub merges: u64,
    pub crashes: u64,
    pub dead: u64,
    pub rows_walked: u64,
    pub cuts: u64,
}
