//! Tests the paths of the HTTP port.

use std::net::SocketAddr;
use std::sync::Arc;

use proto::model::users::Privilege::Monitor;
use sextant::backend::Counters;
use sextant::http::{StatusSources, routes, serve};
use sextant::limited::{ConnectionsMax, PortProtocol, limited_connections};
use sextant::process_figures::OwnProcess;
use tests::harness::http_get;
use tokio::net::TcpListener;

use super::{Doors, Need, Principal};

/// The paths with the privileges that they need. Any other path is absent for all clients.
const PAGES: &[(&str, Need)] = &[
    ("/status", Need::All(Monitor)),
    ("/metrics", Need::All(Monitor)),
    ("/healthz", Need::Own),
    ("/readyz", Need::Own),
];

#[test]
fn the_table_names_every_path() {
    let text = include_str!("../../../../sextant/src/http/routes.rs");
    let paths = text.split(".route(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let mut expected: Vec<&str> = paths.collect();
    let mut found: Vec<&str> = PAGES.iter().map(|(path, _)| *path).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

impl Doors {
    /// Returns the address of an HTTP port that serves one principal.
    async fn http(&self, principal: &Principal) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let observed = StatusSources {
            provider: self.access_of(principal),
            router: self.cluster.cluster().router(),
            indexers: Vec::new(),
            projectors: Vec::new(),
            counters: Arc::new(Counters::default()),
            process: OwnProcess { data: None },
        };
        let limit = ConnectionsMax::default().of_http();
        let connections = limited_connections(listener, PortProtocol::Http, limit, &self.env);
        tokio::spawn(serve(connections, routes(observed), self.trust(), self.env.clone()));
        address
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_page_is_for_those_who_have_its_privilege() {
    let doors = Doors::start().await;
    let mut wrong = Vec::new();
    for (role, principal) in doors.roles() {
        let address = doors.http(&principal).await;
        for (path, need) in PAGES {
            let answer = http_get(address, path).await;
            let expected = if role.refusal(*need).is_some() { "403" } else { "200" };
            let state = answer.split(' ').nth(1).unwrap_or_default();
            let tells = role.refusal(*need).is_some() && answer.contains("hidden");
            if state != expected || tells {
                wrong.push(format!("{}: {path}: {state}, needs {need:?}", role.name));
            }
        }
        let answer = http_get(address, "/anything").await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }
    assert!(wrong.is_empty(), "{} of the table are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
