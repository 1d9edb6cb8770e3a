//! The services never import each other: `proto ← { coordinator, projector, router, indexer } ← sextant ← tests`
//! (DESIGN section 4); `storage` is between `proto` and the services that store rows, and `documents` between `storage` and the
//! projector. The manifests are read as text.

use std::collections::BTreeSet;
use std::path::Path;

const SERVICES: [&str; 4] = ["coordinator", "projector", "router", "indexer"];
/// The services that may depend on the storage engine.
const ON_STORAGE: [&str; 2] = ["indexer", "projector"];

/// Returns the crates of this workspace that a crate depends on, including dev-dependencies.
fn own_dependencies(name: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let folder = match name {
        "storage" => "indexer/storage",
        "documents" => "projector/documents",
        name => name,
    };
    let manifest = root.join(folder).join("Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).expect("a manifest");
    let own = ["proto", "storage", "documents", "sextant", "tests"].into_iter().chain(SERVICES);
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
fn services_depend_on_proto_and_some_on_storage() {
    for service in SERVICES {
        let mut found = own_dependencies(service);
        if ON_STORAGE.contains(&service) {
            found.remove("storage");
        }
        if service == "projector" {
            found.remove("documents");
        }
        let expected = BTreeSet::from(["proto".to_owned()]);
        assert_eq!(found, expected, "dependencies of {service}");
    }
}

#[test]
fn storage_depends_on_proto_alone() {
    assert_eq!(own_dependencies("storage"), BTreeSet::from(["proto".to_owned()]));
}

#[test]
fn documents_depend_on_proto_and_storage() {
    let expected = ["proto", "storage"].map(str::to_owned);
    assert_eq!(own_dependencies("documents"), BTreeSet::from(expected));
}

#[test]
fn proto_depends_on_no_other_crate_and_the_binary_on_all_services() {
    assert_eq!(own_dependencies("proto"), BTreeSet::new());
    let mut expected: BTreeSet<String> = SERVICES.map(str::to_owned).into();
    expected.extend(["proto".to_owned(), "storage".to_owned()]);
    assert_eq!(own_dependencies("sextant"), expected);
}
