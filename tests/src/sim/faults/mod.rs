//! The faults of a run, drawn from the seed. Each fault lasts for a while and is then repaired; the
//! summary counts them by kind.
//!
//! | kind | effect |
//! |---|---|
//! | `crash`, `crash_in_io` | a process ends, at any await or in the middle of a file operation, and restarts |
//! | `members_crash` | all coordinators restart at once |
//! | `cut`, `cut_one_way`, `held`, `slow` | a connection loses all messages, loses one direction, stalls, or is slow |
//! | `pause` | a process neither sends nor receives for a while, and then receives everything at once |
//! | `clock_jump` | a clock jumps by up to an hour, back or forth; all of them drift all the time |
//! | `full_disk`, `failed_io` | a disk accepts no growth; one file operation fails, and the process is restarted soon or much later |
//! | `failed_sync` | a projector's disk fails at a sync, and its process ends soon after |
//! | `flipped_bit` | a bit of an indexer's files flips; the operator notices it and replaces the disk |
//! | `flipped_source_bit` | a bit of a projector's files flips; the operator notices it and flips it back, and all documents must be there |
//! | `damaged_copy` | the same, and the bit stays: the copy is healed from another one in sync, which has everything ([`damage`]) |
//! | `empty_disk` | an indexer restarts with an empty disk |
//! | `source_failover` | a source restarts from an older copy that lacks the end of some vbuckets (the producer of a pushed bucket is not told), or that producer begins new branches at earlier places |
//! | `purge` | an indexer is down or cut off, and the source's log is purged before it returns: in half of the seeds, in some of them during hand-overs |
//! | `loss_at_stage`, `crash_at_stage` | a source restarts from an older copy, or another process dies, at the moment when an index build begins, or a move, a rollback or a hand-over enters another stage ([`super::operator::stages`]): in a seventh of the seeds |
//! | `crash_at_commit` | a process ends at a stage of a commit over two buckets ([`commits`]): in a seventh of the seeds |
//! | `crash_in_scan` | an indexer dies while a slow reader has a part of its rows |
//! | `leader_crash`, `follower_crash`, `copies_crash` | the leading copy of a bucket ends, another copy, or both at once; of a bucket with copies, as all below |
//! | `copies_cut`, `leader_isolated`, `leader_pause` | the leading copy is cut off from the other projectors only, or from all but the clients, or is paused |
//! | `lost_disk`, `older_copy` | a copy restarts with an empty disk or an older one, while another copy in sync has everything |
//! | `crash_at_growth` | the leading copy ends in the moment in which a joining copy has grown into the set over a slow connection ([`growth`]): in a seventh of the seeds with copies |
//! | `purge_while_away` | a copy is down, and the logs are purged before it returns |
//! | `removed_node` | an operator removes an indexer and starts it again, with its data or on an empty disk ([`super::operator::removals`]): in an eighth of the seeds |
//! | `lost_node` | an indexer is down for longer than the coordinators need to take it for dead, and an operator removes it with FORCE: in a sixteenth of the seeds, if they have faults for longer than that |

mod commits;
mod damage;
mod driver;
mod growth;
mod inject;
mod mend;
mod moments;
mod of_copies;

pub use driver::Faults;
