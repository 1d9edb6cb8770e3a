//! The servers under measurement, and their statements.
//!
//! [`Peer`] has the statements, with an implementation for each server: [`sextant`] (one process, or a process for each
//! member) and [`postgres`]. A peer's processes are killed when it is dropped.

pub mod postgres;
mod process;
pub mod sextant;

use std::net::SocketAddr;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls};

use super::super::Outcome;
use super::cpu::Processes;
use super::documents::Document;

/// A parameter of a prepared statement.
pub type Parameter = Box<dyn ToSql + Sync + Send>;

/// An index on n.
#[derive(Clone, Copy, Debug)]
pub struct Index {
    /// The last part of its name.
    pub suffix: &'static str,
    /// The number of its slices.
    pub slices: u16,
    /// True if an entry's slice follows from n, and not from the document's id.
    pub is_partitioned_by_key: bool,
}

/// An index of one slice.
pub const ONE_SLICE: Index = Index { suffix: "n_1", slices: 1, is_partitioned_by_key: false };
/// An index of eight slices, which is the default.
pub const EIGHT_SLICES: Index = Index { suffix: "n_8", slices: 8, is_partitioned_by_key: false };
/// An index of eight slices whose entries are spread by n.
pub const BY_KEY: Index = Index { suffix: "n_key", slices: 8, is_partitioned_by_key: true };

/// A server under measurement. A bucket is a table with a primary key at PostgreSQL.
pub trait Peer {
    /// The name in tables.
    fn name(&self) -> &'static str;

    /// The version of the server.
    fn version(&self) -> &str;

    /// The server's address and processes.
    fn target(&self) -> &Target;

    /// The statements that create a bucket.
    fn create_bucket(&self, bucket: &str) -> String;

    /// The statement that drops a bucket, if there is one, with its indexes.
    fn drop_bucket(&self, bucket: &str) -> String;

    /// The statement that creates an index of a bucket.
    fn create_index(&self, bucket: &str, index: Index) -> String;

    /// The statement that drops an index.
    fn drop_index(&self, bucket: &str, index: Index) -> String {
        format!("DROP INDEX {bucket}_{}", index.suffix)
    }

    /// The indexes that reads need, of these three: a server without slices needs one.
    fn read_indexes(&self) -> &'static [Index];

    /// The relation that a SELECT names to read an index.
    fn relation(&self, bucket: &str, index: Index) -> String;

    /// The statement that loads documents.
    fn copy_in(&self, bucket: &str) -> String;

    /// A document as a line for [`Self::copy_in`], without the line break.
    fn line(&self, document: &Document) -> String;

    /// The statement that writes one document, new or not.
    fn upsert(&self, bucket: &str) -> String;

    /// The function that makes the parameters of [`Self::upsert`]; clients on other threads call it.
    fn upsert_parameters(&self) -> fn(&Document) -> Vec<Parameter>;

    /// The statement after which a session's reads see everything acknowledged; empty if they always do.
    fn see_everything(&self) -> &'static str;

    /// The statements that a server's operator runs after a load.
    fn after_load(&self, bucket: &str) -> Vec<String>;

    /// The SELECT of a range: n from $1 on and below $2.
    fn range(&self, bucket: &str, index: Index) -> String {
        let relation = self.relation(bucket, index);
        format!("SELECT id, n FROM {relation} WHERE n >= $1 AND n < $2 ORDER BY n")
    }

    /// The SELECT of one key: n = $1.
    fn one_key(&self, bucket: &str, index: Index) -> String {
        format!("SELECT id, n FROM {} WHERE n = $1", self.relation(bucket, index))
    }

    /// The SELECT of all rows in order.
    fn all(&self, bucket: &str, index: Index) -> String {
        format!("SELECT id, n FROM {} ORDER BY n", self.relation(bucket, index))
    }
}

/// The address and the processes of a server.
#[derive(Clone, Debug)]
pub struct Target {
    /// The parameters of a connection.
    pub config: Config,
    /// The port for gRPC, if there is one.
    pub grpc: Option<SocketAddr>,
    /// The server's processes.
    pub processes: Processes,
}

impl Target {
    /// Opens a session. Its connection is driven by a task of the present runtime.
    pub async fn connect(&self) -> Outcome<Client> {
        let (client, connection) = self.config.connect(NoTls).await?;
        tokio::spawn(async move {
            // The connection ends with its client, or with the server, which the client notices too.
            let _ended = connection.await;
        });
        Ok(client)
    }
}
