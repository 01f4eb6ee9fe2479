//! Limits that processes of one machine share by a socket. In real time, for a socket cannot be played; what
//! is asserted are counts and orders, no times that a busy machine could miss. Here each throttle is as a
//! process of its own; `tests/shared/local.test.mjs` has real ones, in Rust and Node.
#![cfg(all(feature = "local", unix))]

use std::{
    fs,
    os::unix::{
        fs::{DirBuilderExt, PermissionsExt},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    slice,
    time::Duration,
};

use autothrottle_tower::{Error, Local, Offline, Role, Throttle};
use group::{PAGE, role, take};
use serde_json::{Value, json};

mod group;

/// Where `name` lies, as Node names it.
const CRAWL: &str = "crawl-1e565680";

/// A folder of the test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("at-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }

    fn throttle(&self, options: &Value) -> Throttle {
        Throttle::shared(options, Local::new("crawl").folder(&self.0)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_rate_and_a_quota_hold_for_all_of_a_group() {
    let folder = Folder::new("rate");
    group::a_rate_holds(|options| folder.throttle(options)).await;
    let folder = Folder::new("quota");
    group::a_quota_holds(|options| folder.throttle(options)).await;
}

/// The one that decides leaves, or is dropped: another one decides, and goes on where it was.
#[tokio::test]
async fn a_leader_that_leaves_is_replaced() {
    let folder = Folder::new("leaves");
    let options = json!({ "rate": 50, "quota": { "limit": 10, "window": 600_000 } });
    let first = folder.throttle(&options);
    take(slice::from_ref(&first), 3).await;
    assert_eq!(role(&first), Role::Leader);
    let second = folder.throttle(&options);
    take(slice::from_ref(&second), 3).await;
    assert_eq!(role(&second), Role::Member);
    first.leave().await;
    assert_eq!(role(&first), Role::Closed);
    assert!(matches!(first.acquire(PAGE).await, Err(Error::Invalid { .. })));
    take(slice::from_ref(&second), 2).await;
    assert_eq!(role(&second), Role::Leader);
    let third = folder.throttle(&options);
    drop(second);
    take(slice::from_ref(&third), 2).await;
    assert_eq!(role(&third), Role::Leader);
    let eleventh = tokio::time::timeout(Duration::from_millis(500), third.acquire(PAGE)).await;
    assert!(eleventh.is_err(), "all ten are spent, whichever process decided");
    third.leave().await;
    let left = [CRAWL.to_owned() + ".epoch", CRAWL.to_owned() + ".state"];
    assert_eq!(names(&folder.0), left, "the number of the lease, and what was learned");
}

/// A process that was killed leaves its socket, and perhaps its lock: neither is in the way for long.
#[tokio::test]
async fn the_socket_of_a_killed_process_is_not_in_the_way() {
    let folder = Folder::new("killed");
    fs::DirBuilder::new().mode(0o700).create(&folder.0).unwrap();
    drop(UnixListener::bind(folder.0.join(CRAWL)).unwrap());
    fs::write(folder.0.join(format!("{CRAWL}.lock")), "").unwrap();
    let throttle = folder.throttle(&json!({ "rate": 50 }));
    take(slice::from_ref(&throttle), 3).await;
    assert_eq!(role(&throttle), Role::Leader);
    let mode = |name: &str| fs::metadata(folder.0.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode(CRAWL)), (0o700, 0o600));
    assert!(!names(&folder.0).contains(&format!("{CRAWL}.lock")));
}

/// One that listens and never says a word has no place: after a lease another takes it.
#[tokio::test]
async fn a_leader_that_is_stopped_is_replaced() {
    let folder = Folder::new("stopped");
    fs::DirBuilder::new().mode(0o700).create(&folder.0).unwrap();
    // The system accepts for it, and no word comes.
    let silent = UnixListener::bind(folder.0.join(CRAWL)).unwrap();
    let throttle = folder.throttle(&json!({ "rate": 50 }));
    take(slice::from_ref(&throttle), 3).await;
    assert_eq!(role(&throttle), Role::Leader);
    drop(silent);
}

#[tokio::test]
async fn a_folder_that_others_may_open_is_refused() {
    let folder = Folder::new("open");
    fs::DirBuilder::new().mode(0o755).create(&folder.0).unwrap();
    let by = Local::new("crawl").folder(&folder.0).offline(Offline::Fail);
    let refused = Throttle::shared(json!({}), by).unwrap().acquire(PAGE).await;
    let want = "want a folder of this user's that no other user may open";
    assert!(matches!(&refused, Err(Error::Denied { why }) if why.contains(want)), "{refused:?}");

    let long = folder.0.join("x".repeat(100));
    let refused = Throttle::shared(json!({}), Local::new("crawl").folder(long)).unwrap().acquire(PAGE).await;
    assert!(matches!(&refused, Err(Error::Denied { why }) if why.contains("is shorter by")), "{refused:?}");
}
