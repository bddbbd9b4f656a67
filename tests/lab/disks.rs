//! Disks of all kinds in real guests, and images on top of images.

use std::fs;

use labrig::model::LabPaths;

use super::common::Lab;

const TOPOLOGY: &str = "\
version: 1
name: disks
images:
  base: {build: {micro: {}}}
  micro: {build: {from: base, files: [{from: note, to: /opt/note, mode: \"0600\"}]}}
vswitches:
  data: {subnet: 10.10.0.0/24}
domains:
  a:
    image: micro
    split: {cpus: 1, memory: 160MiB}
    vnets: [{vswitch: data, ip: 10.10.0.11}]
    disks:
      - {name: inner, size: 64MiB, filesystem: ext4, mount: /data/inner, mount_options: [noatime]}
      - {name: outer, size: 64MiB, on: ram, filesystem: ext4, mount: /data, io: {write_iops: 1000}}
      - {name: mine, on: file, path: mine.raw, cache: writethrough}
";

fn lab() -> Lab {
    let lab = Lab::new("disks", TOPOLOGY);
    lab.write("note", "from the file");
    lab.write("mine.raw", vec![b'x'; 1 << 20]);
    lab
}

#[test]
fn disks_are_made_mounted_mended_and_removed() {
    let lab = lab();
    lab.up().exits(0).says("is inside /data");
    assert_eq!(
        lab.exec("a", "cat /opt/note; stat -c ' %a' /opt/note"),
        "from the file 600"
    );
    let mounts = "grep -o ' /data[a-z/]* ext4 rw[,a-z]*' /proc/mounts";
    assert_eq!(
        lab.exec("a", mounts),
        " /data ext4 rw,relatime\n /data/inner ext4 rw,noatime"
    );
    // A disk is found by its name, and one that is not mounted is left as it is.
    let find = "for d in /sys/block/vd*; do [ $(cat $d/serial) = mine ] && head -c 3 /dev/${d##*/}; done; true";
    assert_eq!(lab.exec("a", find), "xxx");
    lab.exec("a", "echo kept >/data/inner/x; echo lost >/data/x; sync");
    let ram = LabPaths::new(lab.state().join("labs/disks")).ram();
    assert_eq!(fs::read_dir(&ram).unwrap().count(), 1);

    // A lost disk is made anew, the others keep what is on them.
    for file in fs::read_dir(&ram).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    lab.up()
        .exits(0)
        .says("create RAM disk")
        .says("one of its disks was lost");
    assert_eq!(
        lab.exec("a", "cat /data/inner/x; ls /data"),
        "kept\ninner\nlost+found"
    );

    // `down` takes all that labrig made, and nothing else.
    lab.down().exits(0);
    assert!(!ram.exists());
    assert_eq!(fs::read(lab.path("mine.raw")).unwrap(), vec![b'x'; 1 << 20]);
}

#[test]
fn a_disk_with_something_on_it_is_never_made_anew() {
    let lab = lab();
    let topology = TOPOLOGY.replace("cache: writethrough", "filesystem: ext4, mount: /mine");
    lab.write("topology.yaml", topology);
    lab.up()
        .exits(4)
        .says("disk mine cannot be mounted on /mine as ext4");
    assert_eq!(fs::read(lab.path("mine.raw")).unwrap(), vec![b'x'; 1 << 20]);
    // A blank one is.
    lab.write("mine.raw", vec![0; 8 << 20]);
    lab.down().exits(0);
    lab.up().exits(0);
    lab.exec("a", "grep -q ' /mine ext4' /proc/mounts");
}

#[test]
fn what_is_not_there_is_refused_before_anything_is_made() {
    let lab = lab();
    for (from, to, said) in [
        (
            "path: mine.raw",
            "path: gone.raw",
            "gone.raw cannot be used",
        ),
        (
            "on: file, path: mine.raw",
            "on: lvm, path: /dev/labrig-no-such-vg/a",
            "/dev/labrig-no-such-vg/a cannot be used",
        ),
        (
            "path: mine.raw",
            "path: mine.raw, format: qcow2",
            "mine.raw is no qcow2 file",
        ),
        (
            "size: 64MiB, on: ram",
            "size: 9000GiB, on: ram",
            "no room for disks in RAM",
        ),
    ] {
        lab.write("topology.yaml", TOPOLOGY.replace(from, to));
        for verb in ["plan", "up"] {
            lab.labrig([verb, "topology.yaml"]).exits(3).says(said);
        }
        assert_eq!(lab.labs_entries(), [""; 0]);
    }
}
