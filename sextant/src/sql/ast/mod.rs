//! The syntax tree of statements, which the parser returns.
//!
//! Expressions are [`proto::expr::Expr`]. A parameter is an [`Expr::Parameter`] until a portal
//! replaces it by a value. Names of buckets, indexes and settings are converted to lower case;
//! paths are not.

mod admin;
mod bucket;
mod index;
mod select;
mod users;

use proto::expr::Expr;
use proto::model::data_set::Files;
use proto::model::ids::TransactionId;

pub use self::admin::Admin;
pub use self::bucket::{CreateBucket, CreateDataSet, Insert};
pub use self::index::{CreateIndex, IndexChange, IndexOptions, KeyItem, Partition, TextExpr};
pub use self::select::{CatalogueQuery, OrderItem, Select, SelectExpr, SelectItem};
pub use self::users::{AlterUser, HiddenText, SecretText, UserStatement};

/// A parsed statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `CREATE BUCKET`.
    CreateBucket(CreateBucket),
    /// `DROP BUCKET`.
    DropBucket {
        /// The name of the bucket.
        name: String,
        /// True if an absent bucket is no error.
        if_exists: bool,
        /// `RESTRICT`: refused while the bucket has indexes.
        restrict: bool,
    },
    /// `INSERT INTO`.
    Insert(Insert),
    /// `DELETE FROM`, by id only.
    Delete {
        /// The name of the bucket.
        bucket: String,
        /// The ids of the documents.
        ids: Vec<Expr>,
    },
    /// `SELECT` from an index, from a bucket by id, or of constants.
    Select(Select),
    /// A query of PostgreSQL's catalogue, which has no rows.
    Catalogue(CatalogueQuery),
    /// `EXPLAIN SELECT`.
    Explain(Select),
    /// `COPY b FROM STDIN`.
    CopyIn {
        /// The name of the bucket.
        bucket: String,
        /// The name of the field that contains a document's id.
        id_field: String,
        /// True with `atomic on`: the COPY is one commit, of any length.
        is_atomic: bool,
    },
    /// `COPY (SELECT …) TO STDOUT`.
    CopyOut(Select),
    /// `CREATE INDEX`.
    CreateIndex(CreateIndex),
    /// `BUILD INDEX ON b (i, …)`.
    BuildIndex {
        /// The name of the bucket.
        bucket: String,
        /// The names of the indexes.
        indexes: Vec<String>,
    },
    /// `DROP INDEX`.
    DropIndex {
        /// The name of the index.
        name: String,
        /// True if an absent index is no error.
        if_exists: bool,
    },
    /// `CANCEL BUILD i`.
    CancelBuild(String),
    /// `ALTER INDEX i …` that changes the definition, or `REINDEX i`.
    AlterIndex {
        /// The name of the index.
        name: String,
        /// The changes to make.
        change: IndexChange,
    },
    /// `ALTER INDEX i RENAME TO j`.
    RenameIndex {
        /// The name of the index.
        name: String,
        /// The new name of the index.
        to: String,
    },
    /// `CREATE BUCKET b FROM FILES`.
    CreateDataSet(CreateDataSet),
    /// `ALTER BUCKET b LOAD VERSION 'v' FROM 'pattern'`.
    LoadVersion {
        /// The name of the data set.
        bucket: String,
        /// The name of the version.
        version: String,
        /// The files of the version.
        files: Files,
        /// The option `allow_empty`: true if files without rows may replace the serving version.
        allow_empty: bool,
    },
    /// A statement about the placement of slices and vbuckets.
    Admin(Admin),
    /// A statement about users and privileges.
    User(UserStatement),
    /// `EXPLAIN REBALANCE` of one index, or of all.
    ExplainRebalance(Option<String>),
    /// `SHOW`.
    Show(Show),
    /// `SET name = value`, `RESET name` and `SET name = DEFAULT`.
    Set {
        /// The name of the setting.
        name: String,
        /// The new value; `None` to restore the default.
        value: Option<String>,
        /// True with `SET LOCAL`, whose effect ends with the transaction.
        local: bool,
    },
    /// `RESET ALL`.
    ResetAll,
    /// `SET TRANSACTION`: modes of the open transaction.
    SetTransaction(TransactionModes),
    /// `SET SESSION CHARACTERISTICS AS TRANSACTION`: modes of later transactions.
    SetCharacteristics(TransactionModes),
    /// A statement about a feature that Sextant does not have. The statement has no effect.
    Nothing {
        /// The command tag of the answer.
        tag: &'static str,
    },
    /// `BEGIN`, `START TRANSACTION`.
    Begin(TransactionModes),
    /// `COMMIT`, `END`.
    Commit,
    /// `ROLLBACK`, `ABORT`.
    Rollback,
    /// `SAVEPOINT name`.
    Savepoint(String),
    /// `ROLLBACK TO [SAVEPOINT] name`.
    RollbackTo(String),
    /// `RELEASE [SAVEPOINT] name`.
    Release(String),
    /// `DISCARD ALL`.
    DiscardAll,
    /// `DEALLOCATE name`; `None` for `DEALLOCATE ALL`.
    Deallocate(Option<String>),
}

/// The modes that a statement sets for a transaction. `DEFERRABLE` has no effect, since reads are
/// never deferred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionModes {
    /// `READ ONLY` (true) or `READ WRITE` (false).
    pub read_only: Option<bool>,
    /// `ISOLATION LEVEL …`, in lower case. Whatever the level, a transaction has snapshot
    /// isolation.
    pub isolation: Option<&'static str>,
}

/// The kinds of `SHOW`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Show {
    /// `SHOW BUCKETS`.
    Buckets,
    /// `SHOW COPIES`.
    Copies,
    /// `SHOW INDEXES`.
    Indexes,
    /// `SHOW NODES`.
    Nodes,
    /// `SHOW SLICES`.
    Slices,
    /// `SHOW MOVES`.
    Moves,
    /// `SHOW ROLLBACKS`.
    Rollbacks,
    /// `SHOW HOLDS`.
    Holds,
    /// `SHOW VERSIONS`.
    Versions,
    /// `SHOW USERS`.
    Users,
    /// `SHOW GRANTS`, for one user or all (`None`).
    Grants(Option<String>),
    /// `SHOW TRANSACTIONS`.
    Transactions,
    /// `SHOW TRANSACTION n`.
    Transaction(TransactionId),
    /// `SHOW name`, also of `write_position` and `transaction_id`.
    Setting(String),
    /// `SHOW ALL`.
    All,
}
