//! The image store from outside: import, list, verify, collect.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::common::Lab;

const TOPOLOGY: &str = "\
version: 1
name: stored
images:
  micro: {build: {micro: {}}}
vswitches:
  data: {subnet: 10.10.0.0/24}
domains:
  a:
    image: micro
    split: {cpus: 1, memory: 160MiB}
    vnets: [{vswitch: data, ip: 10.10.0.11}]
";

#[test]
fn files_go_into_the_store_and_out_again() {
    let lab = Lab::with_own_images("stored", TOPOLOGY);
    lab.labrig(["image", "ls"]).exits(0).prints("no image in");
    lab.write("disk.raw", vec![7; 1 << 20]);
    let imported = lab.labrig(["image", "import", "disk.raw"]).exits(0);
    assert!(
        imported.stdout.contains("disk.raw\", sha256: \""),
        "{}",
        imported.stdout
    );

    // What it says goes into a topology.
    let lines = imported.stdout.split("images:\n").nth(1).unwrap();
    let topology = TOPOLOGY.replace(
        "  micro: {build: {micro: {}}}\n",
        &format!("{}\n", lines.trim_end()),
    );
    lab.write(
        "imported.yaml",
        topology.replace("image: micro", "image: disk"),
    );
    lab.labrig(["check", "imported.yaml"]).exits(0);
    lab.labrig(["image", "build", "imported.yaml", "disk"])
        .exits(0)
        .prints("image disk is there");
    lab.labrig(["image", "build", "imported.yaml", "nothing"])
        .exits(2)
        .says("find image nothing");

    let listed = lab.labrig(["image", "ls", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed[0]["from"], &listed[0]["labs"]),
        (&"files".into(), &serde_json::json!([]))
    );
    lab.labrig(["image", "verify"])
        .exits(0)
        .prints("1 of 1 images are good");

    // A change in place is found.
    let digest = listed[0]["digest"].as_str().unwrap();
    let disk = lab
        .state()
        .join("images/content")
        .join(digest)
        .join("disk.qcow2");
    let mut content = fs::read(&disk).unwrap();
    content[70_000] ^= 1;
    fs::set_permissions(&disk, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&disk, content).unwrap();
    lab.labrig(["image", "verify"])
        .exits(4)
        .prints("disk.qcow2 was changed");
    lab.labrig(["image", "ls"]).exits(0).prints("DAMAGED");

    lab.labrig(["image", "gc", "--dry-run"])
        .exits(0)
        .prints("1 removed");
    assert!(disk.exists());
    lab.labrig(["image", "gc"]).exits(0).prints(digest);
    assert!(!disk.exists());
    lab.labrig(["image", "ls"]).exits(0).prints("no image in");
}

#[test]
fn an_image_that_a_lab_uses_is_not_collected() {
    let lab = Lab::with_own_images("stored", TOPOLOGY);
    lab.up().exits(0);
    lab.labrig(["image", "ls"]).exits(0).prints("stored");
    lab.labrig(["image", "gc"]).exits(0).prints("0 removed");
    lab.labrig(["exec", "stored", "a", "--", "true"]).exits(0);
    lab.down().exits(0);
    lab.labrig(["image", "gc"]).exits(0).prints("1 removed");
}
