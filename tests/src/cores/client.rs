//! A client that sends DDL and requests for moves, one at a time. The client repeats a request with
//! its request id until an answer arrives; the request must then be executed exactly once.

use std::collections::{BTreeSet, VecDeque};

use proto::model::bucket::SourceKind;
use proto::model::ids::{Generation, IndexId, SliceNo};
use proto::model::index::IndexSpec;
use proto::model::moves::PlannedMove;
use proto::model::node::{NodeInfo, Role};
use proto::rpc::command::{
    BuildIndexes, CancelMoves, Command, CreateBucket, CreateIndex, DrainNode, DropIndex, Outcome,
    Proposal, RegisterNode, RequestId, SetReplicas, StartMoves,
};

use super::history::VBUCKETS;
use super::world::{BUCKET, Event, INDEXERS, ROUTER, SOURCE, World};
use crate::raft::MEMBERS;

/// The time after which an unanswered request is repeated, in milliseconds.
const AGAIN_MS: u64 = 900;
/// The maximum number of existing indexes.
const INDEXES_MAX: usize = 3;

/// The simulated client.
pub struct Client {
    /// The commands that create the cluster's bucket and settings.
    first: VecDeque<Command>,
    waits: Option<(Proposal, u64)>,
    sequence: u64,
    /// The names of the existing indexes, and the number of indexes ever created.
    indexes: BTreeSet<IndexId>,
    made: u64,
    /// The number of answered requests.
    pub answered: u64,
    /// The number of started moves.
    pub moves: u64,
}

fn node(id: proto::model::ids::NodeId, role: Role) -> Command {
    let address = format!("node-{id}");
    Command::RegisterNode(RegisterNode {
        node: NodeInfo { id, role, address, zone: String::new() },
    })
}

impl Client {
    /// Returns a client that first creates the cluster's bucket and settings.
    pub fn new(random: &mut fastrand::Rng) -> Self {
        let mut first = VecDeque::from([node(SOURCE, Role::Projector), node(ROUTER, Role::Router)]);
        first.extend(INDEXERS.iter().map(|id| node(*id, Role::Indexer)));
        first.push_back(Command::CreateBucket(CreateBucket {
            name: "b".into(),
            vbuckets: VBUCKETS,
            source: SourceKind::Push,
            projectors: 1,
            copies: None,
            if_not_exists: false,
        }));
        let mut client = Self {
            first,
            waits: None,
            sequence: 0,
            indexes: BTreeSet::new(),
            made: 0,
            answered: 0,
            moves: 0,
        };
        for _ in 0..2 {
            let create = client.create(random);
            client.first.push_back(create);
        }
        client
    }

    fn create(&mut self, random: &mut fastrand::Rng) -> Command {
        self.made += 1;
        let mut spec = IndexSpec::new(format!("i{}", self.made), "b");
        spec.slices = [1, 2, 4, 4][random.usize(..4)];
        spec.replicas = random.u8(..2);
        Command::CreateIndex(CreateIndex {
            bucket: BUCKET,
            spec,
            defer_build: random.u32(..6) == 0,
            if_not_exists: false,
        })
    }

    fn choose(&mut self, random: &mut fastrand::Rng) -> Command {
        let any = random.usize(..self.indexes.len().max(1));
        let index = self.indexes.iter().nth(any).copied().unwrap_or(IndexId(0));
        match random.u32(..20) {
            0..3 if self.indexes.len() < INDEXES_MAX => self.create(random),
            3..5 if self.indexes.len() > 1 => Command::DropIndex(DropIndex { index }),
            5..7 => Command::BuildIndexes(BuildIndexes { indexes: vec![index] }),
            7 => Command::SetReplicas(SetReplicas { index, replicas: random.u8(..3) }),
            8 => Command::CancelMoves(CancelMoves { index: None }),
            9..11 => Command::DrainNode(DrainNode {
                node: INDEXERS[random.usize(..INDEXERS.len())],
                drain: random.u32(..3) == 0,
            }),
            _ => Command::StartMoves(StartMoves {
                moves: (0..random.usize(1..4)).map(|_| self.a_move(random)).collect(),
            }),
        }
    }

    /// Draws a move of a random slice between random nodes; most are invalid and refused.
    fn a_move(&self, random: &mut fastrand::Rng) -> PlannedMove {
        let place = |random: &mut fastrand::Rng| Some(INDEXERS[random.usize(..INDEXERS.len())]);
        PlannedMove {
            index: IndexId(random.u64(1..=self.made.max(1))),
            generation: Generation(1),
            slice: SliceNo(random.u16(..4)),
            from: if random.u32(..4) > 0 { place(random) } else { None },
            to: place(random),
            reason: String::new(),
        }
    }
}

impl World {
    /// Sends the next request, or repeats the unanswered one.
    pub fn client_step(&mut self) {
        let ms = self.random.u64(40..120);
        self.after(ms, Event::Client);
        let now_ms = self.now_ms;
        if let Some((request, sent_ms)) = &mut self.client.waits {
            if now_ms < *sent_ms + AGAIN_MS {
                return;
            }
            *sent_ms = now_ms;
            let request = request.clone();
            return self.send_request(request);
        }
        let command = match self.client.first.pop_front() {
            Some(command) => command,
            None if self.broken.over || self.random.u32(..3) > 0 => return,
            None => self.client.choose(&mut self.random),
        };
        self.client.sequence += 1;
        let id = RequestId { client: 7, sequence: self.client.sequence };
        let request = Proposal::from(command).with_request(id);
        self.client.waits = Some((request.clone(), now_ms));
        self.send_request(request);
    }

    fn send_request(&mut self, request: Proposal) {
        // The client tries all members; those that do not lead drop the request.
        for (at, member) in MEMBERS.into_iter().enumerate() {
            if !self.is_cut(member) && self.leading(at).is_some() {
                self.send(Event::Request { at, request: request.clone() });
            }
        }
    }

    /// Handles an answer.
    pub fn client_answer(&mut self, id: RequestId, outcome: &Outcome) {
        let client = &mut self.client;
        let Some((request, _)) = client.waits.take_if(|(waits, _)| waits.request == Some(id))
        else {
            return;
        };
        client.answered += 1;
        self.judge.answered(&request.command, outcome);
        match (&request.command, outcome) {
            (Command::CreateIndex(_), Outcome::Index(index)) => {
                client.indexes.insert(*index);
            }
            (Command::DropIndex(DropIndex { index }), Outcome::Done) => {
                client.indexes.remove(index);
            }
            (Command::StartMoves(_), Outcome::Moves(ids)) => client.moves += ids.len() as u64,
            // The cluster is not set up yet: a source or indexers are missing.
            (Command::CreateBucket(_) | Command::CreateIndex(_), Outcome::Refused(error))
                if error.is_retry() =>
            {
                client.first.push_front(request.command)
            }
            _ => {}
        }
    }
}
