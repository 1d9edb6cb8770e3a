#![allow(clippy::disallowed_methods, reason = "tests look at real files")]

use proto::model::ids::UserId;
use proto::model::users::{Grants, ScramVerifier, Secret32, User, UserLimits};

use super::*;

pub const CLUSTER: ClusterId = ClusterId(7);

/// Returns the users with this `cas`; one of them is "ada".
pub fn users(cas: u64) -> Arc<Users> {
    let verifier = ScramVerifier {
        salt: [3; 16],
        iterations: 4_096,
        stored_key: Secret32::new([4; 32]),
        server_key: Secret32::new([5; 32]),
    };
    let ada = User {
        id: UserId(1),
        name: "ada".into(),
        verifier: Some(verifier),
        until_unix_ms: None,
        tokens: Vec::new(),
        grants: Grants::default(),
        limits: UserLimits::default(),
        secret_no: cas,
    };
    let by_name = [("ada".to_owned(), Arc::new(ada))].into();
    Arc::new(Users { cas, last_user: UserId(1), by_name, ..Users::default() })
}

#[tokio::test]
async fn the_users_of_the_cluster_are_read_again_and_others_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let file = UsersFile::new(&Env::real(), dir.path());
    assert_eq!(file.read(Some(CLUSTER)).await, None, "there is none");
    for cas in [4, 9] {
        file.write(StoredUsers { cluster: CLUSTER, users: users(cas) }).await.unwrap();
        assert_eq!(file.read(Some(CLUSTER)).await, Some(users(cas)));
    }
    assert_eq!(file.read(Some(ClusterId(8))).await, None);
    assert_eq!(file.read(None).await, None, "the cluster of this process is not known");
    // A leftover file of a crash does no harm.
    std::fs::write(dir.path().join("USERS.tmp"), b"half").unwrap();
    file.write(StoredUsers { cluster: CLUSTER, users: users(10) }).await.unwrap();
    let names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["USERS"]);
    file.remove().await;
    assert_eq!(file.read(Some(CLUSTER)).await, None);
}

/// The encoding of the file must be that of version 1: a change of the encoding needs a new
/// version.
#[test]
fn the_encoding_is_that_of_version_1() {
    let bytes = FILE.encode(&StoredUsers { cluster: CLUSTER, users: users(4) }).unwrap();
    let check = crc32c::crc32c(&bytes);
    assert_eq!((bytes.len(), check), GOLDEN);
}

/// The length and the checksum of the encoded file.
const GOLDEN: (usize, u32) = (164, 1_901_096_696);
