//! A shipped topology in its small size, on real guests.

use std::path::Path;

use super::common::Lab;

#[test]
fn the_small_directory_comes_up_as_its_file_says() {
    let lab = Lab::new("directory-small", "");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("topologies/directory-small.yaml");
    lab.labrig(["up", file.to_str().unwrap()]).exits(0);
    assert_eq!(lab.exec("server", "ulimit -Sn; ulimit -Hn"), "8192\n16368");
    let config = lab.exec("server", "cat /etc/labrig/instances/directory.conf");
    for line in ["threads 8", "listener-threads 2", "loglevel none"] {
        assert!(config.lines().any(|l| l.trim() == line), "{line}: {config}");
    }
    // The server takes it, and the generator knows the server by its name.
    lab.exec(
        "server",
        "mkdir -p /run/slapd && slaptest -u -f /etc/labrig/instances/directory.conf",
    );
    lab.exec("load", "getent hosts server");
    lab.down().exits(0);
    lab.assert_nothing_left();
}
