//! Parses statements about the placement of slices, vbuckets and copies of buckets (`REBALANCE`,
//! `DRAIN NODE`, `REMOVE NODE`, `ALTER BUCKET`), and about the coordinators (`ADD COORDINATOR`,
//! `REMOVE COORDINATOR`).

use proto::model::bucket::VBUCKETS_MAX;
use proto::model::copies::COPIES_MAX;
use proto::model::data_set::IDLE_MS_MAX;
use proto::model::ids::{NodeId, TransactionId, VbucketId};
use proto::rpc::api::CoordinatorChange;
use proto::{Error, ErrorCode};
use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use crate::sql::ast::{Admin, Statement};
use crate::sql::error::SqlResult;

impl Cursor<'_> {
    /// Parses `REBALANCE [INDEX i]`.
    pub(super) fn rebalance(&mut self) -> SqlResult<Statement> {
        let index = self.rebalance_index()?;
        Ok(Statement::Admin(Admin::Rebalance { index }))
    }

    /// Parses `REBALANCE [INDEX i]`, also after EXPLAIN or CANCEL. Returns the name of the index.
    pub(super) fn rebalance_index(&mut self) -> SqlResult<Option<String>> {
        self.expect_word("REBALANCE")?;
        match self.eat_word("INDEX") {
            true => self.object_name("the name of an index").map(Some),
            false => Ok(None),
        }
    }

    /// Parses `CANCEL REBALANCE [INDEX i]`, `CANCEL DRAIN NODE 'n'`, `CANCEL TRANSACTION n` and
    /// `CANCEL BUILD i`.
    pub(super) fn cancel(&mut self) -> SqlResult<Statement> {
        self.expect_word("CANCEL")?;
        if self.is("DRAIN") {
            return self.drain(false);
        }
        if self.eat_word("TRANSACTION") {
            let id = TransactionId(self.integer("the number of a transaction")?);
            return Ok(Statement::Admin(Admin::CancelTransaction(id)));
        }
        if self.eat_word("BUILD") {
            return self.object_name("the name of an index").map(Statement::CancelBuild);
        }
        if !self.is("REBALANCE") {
            return Err(self.expected("REBALANCE, DRAIN, TRANSACTION or BUILD"));
        }
        let index = self.rebalance_index()?;
        Ok(Statement::Admin(Admin::CancelRebalance { index }))
    }

    /// Parses `DRAIN NODE 'n'`. `drain` is false after CANCEL.
    pub(super) fn drain(&mut self, drain: bool) -> SqlResult<Statement> {
        self.expect_words(&["DRAIN", "NODE"])?;
        let node = self.node()?;
        Ok(Statement::Admin(Admin::DrainNode { node, drain }))
    }

    /// Parses `ADD COORDINATOR 'n' AT 'host:port'`.
    pub(super) fn add(&mut self) -> SqlResult<Statement> {
        self.expect_words(&["ADD", "COORDINATOR"])?;
        let node = self.coordinator_number()?;
        self.expect_word("AT")?;
        let place = self.expected("the address of the coordinator in quotes: 'host:port'");
        let address = self.eat_string().ok_or(place)?;
        let change = CoordinatorChange::Add { node, address };
        Ok(Statement::Admin(Admin::ChangeCoordinators(change)))
    }

    /// Parses the number of a coordinator, which the catalog need not contain.
    fn coordinator_number(&mut self) -> SqlResult<NodeId> {
        let place = self.expected("the number of a coordinator, its --id");
        let name = self.node()?;
        name.parse().map(NodeId).map_err(|_| place)
    }

    /// Parses `REMOVE NODE 'n' [FORCE | WAIT]` and `REMOVE COORDINATOR 'n'`.
    pub(super) fn remove(&mut self) -> SqlResult<Statement> {
        self.expect_word("REMOVE")?;
        if self.eat_word("COORDINATOR") {
            let change = CoordinatorChange::Remove { node: self.coordinator_number()? };
            return Ok(Statement::Admin(Admin::ChangeCoordinators(change)));
        }
        if !self.eat_word("NODE") {
            return Err(self.expected("NODE or COORDINATOR"));
        }
        let node = self.node()?;
        let force = self.eat_word("FORCE");
        let wait = !force && self.eat_word("WAIT");
        Ok(Statement::Admin(Admin::RemoveNode { node, wait, force }))
    }

    /// Parses `ALTER INDEX`, `ALTER BUCKET` and `ALTER USER`.
    pub(super) fn alter(&mut self) -> SqlResult<Statement> {
        self.expect_word("ALTER")?;
        if self.eat_word("BUCKET") {
            return self.alter_bucket();
        }
        if self.eat_word("USER") {
            return self.alter_user();
        }
        self.refuse_role()?;
        if !self.eat_word("INDEX") {
            return Err(self.expected("INDEX, BUCKET or USER"));
        }
        self.alter_index()
    }

    /// Parses `ALTER BUCKET b MOVE VBUCKET k, … TO 'n'`, `ALTER BUCKET b MOVE TO 'n'`, `ALTER
    /// BUCKET b SET (…)`, `ALTER BUCKET b CANCEL MOVES`, `ALTER BUCKET b LOAD VERSION …`, and
    /// `ALTER BUCKET b CANCEL VERSION 'v'`.
    fn alter_bucket(&mut self) -> SqlResult<Statement> {
        let bucket = self.object_name("the name of a bucket")?;
        if self.eat_words(&["CANCEL", "MOVES"]) {
            return Ok(Statement::Admin(Admin::CancelVbuckets { bucket }));
        }
        if self.eat_word("CANCEL") {
            return self.cancel_version(bucket);
        }
        if self.eat_word("LOAD") {
            return self.load_version(bucket);
        }
        if self.eat_words(&["MOVE", "TO"]) {
            let to = self.node()?;
            return Ok(Statement::Admin(Admin::MoveBucket { bucket, to }));
        }
        if self.eat_word("SET") {
            return self.set_bucket_options(bucket);
        }
        if !self.eat_words(&["MOVE", "VBUCKET"]) {
            let what =
                "MOVE VBUCKET, MOVE TO, SET (…), LOAD VERSION, CANCEL MOVES or CANCEL VERSION";
            return Err(self.expected(what));
        }
        let mut vbuckets = vec![self.vbucket()?];
        while self.eat(&Token::Comma) {
            vbuckets.push(self.vbucket()?);
        }
        self.expect_word("TO")?;
        let to = self.node()?;
        Ok(Statement::Admin(Admin::MoveVbuckets { bucket, vbuckets, to }))
    }

    /// Parses `(copies = n)` or `(version_idle = …)`.
    fn set_bucket_options(&mut self, bucket: String) -> SqlResult<Statement> {
        self.expect(&Token::LParen)?;
        let option = self.with_option()?;
        let set = match option.name.as_str() {
            "copies" => {
                let copies = option.integer(1, COPIES_MAX.into())? as u8;
                Admin::SetCopies { bucket, copies }
            }
            "version_idle" => {
                Admin::SetVersionIdle { bucket, idle_ms: option.duration_ms(IDLE_MS_MAX)? }
            }
            _ => return Err(option.unknown_error("copies and version_idle")),
        };
        self.expect(&Token::RParen)?;
        Ok(Statement::Admin(set))
    }

    /// Parses the number of a vbucket.
    fn vbucket(&mut self) -> SqlResult<VbucketId> {
        let place = self.expected("a vbucket");
        let vbucket = self.integer("the number of a vbucket")?;
        match u16::try_from(vbucket).ok().filter(|vbucket| *vbucket < VBUCKETS_MAX) {
            Some(vbucket) => Ok(VbucketId(vbucket)),
            None => {
                let what =
                    format!("there is no vbucket {vbucket}: a bucket has at most {VBUCKETS_MAX}");
                let error = Error::new(ErrorCode::InvalidParameter, what);
                Err(crate::sql::error::SqlError { error, position: place.position })
            }
        }
    }
}
