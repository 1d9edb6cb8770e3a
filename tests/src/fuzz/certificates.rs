//! Samples of certificates.

use std::cell::OnceCell;

use proto::env::Env;
use proto::model::identity::ClusterId;
use proto::model::ids::NodeId;
use proto::model::node::Role;
use sextant::tls::{Authority, Identity};

/// Returns certificates of an authority, a node and a user, as DER and as PEM; the node's PEM
/// contains its key.
pub fn certificates() -> [(Vec<u8>, Vec<u8>); 3] {
    thread_local! {
        static MADE: OnceCell<[(Vec<u8>, Vec<u8>); 3]> = const { OnceCell::new() };
    }
    MADE.with(|made| made.get_or_init(make_certificates).clone())
}

fn make_certificates() -> [(Vec<u8>, Vec<u8>); 3] {
    let (env, cluster) = (Env::real(), ClusterId(7));
    let authority = Authority::new(cluster, env.clock.unix_ms()).expect("an authority");
    let issue = |identity: Identity| {
        let issued = authority.issue(&identity, &["localhost".to_owned()], env.clock.unix_ms());
        issued.expect("a certificate")
    };
    let node = issue(Identity::Node { cluster, role: Role::Indexer, node: NodeId(3) });
    let user = issue(Identity::User { cluster, name: "ada".into() });
    let pair = |certificate: &str, key: &str| {
        (der(certificate), format!("{certificate}{key}").into_bytes())
    };
    [
        pair(authority.certificate(), ""),
        pair(&node.certificate, &node.key),
        pair(&user.certificate, ""),
    ]
}

/// The bytes of the first PEM section.
fn der(pem: &str) -> Vec<u8> {
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let lines = pem.lines().skip(1).take_while(|line| !line.starts_with('-'));
    let digits: Vec<u8> = lines.flat_map(str::bytes).filter_map(digit).collect();
    let bits = |part: &[u8]| part.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit));
    let whole = digits.chunks(4).flat_map(|part| {
        let bytes = (bits(part) << (6 * (4 - part.len()) + 8)).to_be_bytes();
        bytes[..part.len() - 1].to_vec()
    });
    whole.collect()
}
