//! The services never import each other: `proto ← { coordinator, projector, router, indexer } ←
//! sextant ← tests` (DESIGN section 4). Read from the manifests, so that no build has to notice.

use std::collections::BTreeSet;
use std::path::Path;

const SERVICES: [&str; 4] = ["coordinator", "projector", "router", "indexer"];

/// The workspace's own crates among a crate's dependencies, those of its tests included.
fn own_dependencies(name: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let manifest = std::fs::read_to_string(root.join(name).join("Cargo.toml")).expect("a manifest");
    let own = ["proto", "sextant", "tests"].into_iter().chain(SERVICES);
    own.filter(|other| {
        manifest.lines().any(|line| {
            let line = line.replace(' ', "");
            line.starts_with(&format!("{other}=")) || line.starts_with(&format!("{other}."))
        })
    })
    .filter(|other| *other != name)
    .map(str::to_owned)
    .collect()
}

#[test]
fn services_depend_on_proto_alone() {
    for service in SERVICES {
        let expected = BTreeSet::from(["proto".to_owned()]);
        assert_eq!(own_dependencies(service), expected, "dependencies of {service}");
    }
}

#[test]
fn proto_depends_on_none_of_the_others_and_the_binary_joins_the_services() {
    assert_eq!(own_dependencies("proto"), BTreeSet::new());
    let mut expected: BTreeSet<String> = SERVICES.map(str::to_owned).into();
    expected.insert("proto".to_owned());
    assert_eq!(own_dependencies("sextant"), expected);
}
