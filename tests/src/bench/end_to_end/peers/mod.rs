//! The servers under measurement, and their statements.
//!
//! [`Peer`] has the statements, with an implementation for each server: [`sextant`] (one process,
//! or a process for each member) and [`postgres`]. The processes of a server are killed when its
//! [`Peer`] is dropped.

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
    /// The suffix of the index's name.
    pub suffix: &'static str,
    /// The number of slices of the index.
    pub slices: u16,
    /// True if n determines an entry's slice; false if the document's id does.
    pub is_partitioned_by_key: bool,
}

/// An index of one slice.
pub const ONE_SLICE: Index = Index { suffix: "n_1", slices: 1, is_partitioned_by_key: false };
/// An index of eight slices, which is the default.
pub const EIGHT_SLICES: Index = Index { suffix: "n_8", slices: 8, is_partitioned_by_key: false };
/// An index of eight slices that is partitioned by n.
pub const BY_KEY: Index = Index { suffix: "n_key", slices: 8, is_partitioned_by_key: true };

/// A server under measurement. At PostgreSQL a bucket is a table with a primary key.
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

    /// Returns the indexes among these three that reads need: a server without slices needs only
    /// one.
    fn read_indexes(&self) -> &'static [Index];

    /// The relation that a SELECT names to read an index.
    fn relation(&self, bucket: &str, index: Index) -> String;

    /// The statement that loads documents into a bucket.
    fn copy_in(&self, bucket: &str) -> String;

    /// A document as a line for [`Self::copy_in`], without the line break.
    fn line(&self, document: &Document) -> String;

    /// The statement that writes one document, new or not.
    fn upsert(&self, bucket: &str) -> String;

    /// The function that returns the parameters of [`Self::upsert`] for a document; clients on
    /// other threads call it.
    fn upsert_parameters(&self) -> fn(&Document) -> Vec<Parameter>;

    /// The statement after which a session's reads include all acknowledged writes; empty if they
    /// always do.
    fn see_everything(&self) -> &'static str;

    /// The statements that an operator runs after a load.
    fn after_load(&self, bucket: &str) -> Vec<String>;

    /// The SELECT of a range: $1 ≤ n < $2.
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
    /// The address of the gRPC port, if there is one.
    pub grpc: Option<SocketAddr>,
    /// The server's processes.
    pub processes: Processes,
}

impl Target {
    /// Opens a session, whose connection is driven by a task of the present runtime.
    pub async fn connect(&self) -> Outcome<Client> {
        let (client, connection) = self.config.connect(NoTls).await?;
        tokio::spawn(async move {
            // The connection ends with its client, or with the server, which the client notices too.
            let _ended = connection.await;
        });
        Ok(client)
    }
}
