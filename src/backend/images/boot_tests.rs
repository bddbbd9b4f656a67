//! What the first process of a guest does with a seed, on a directory instead of a disk.

use std::fs;
use std::path::Path;
use std::process::Command;

const BOOT: &str = include_str!("assets/boot.sh");

/// Lays a seed of these files over a root as the first process does.
fn plant(root: &Path, files: &[(&str, &str)]) {
    let seed = root.with_extension("tar");
    let mut tar = tar::Builder::new(fs::File::create(&seed).unwrap());
    let list: String = files.iter().map(|(path, _)| format!("{path}\n")).collect();
    for (path, content) in files.iter().chain([&("etc/labrig/files", list.as_str())]) {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, path, content.as_bytes())
            .unwrap();
    }
    tar.into_inner().unwrap();
    let script = format!("{BOOT}\nseed=$2\nput_back \"$1\"\ntar -x -C \"$1\" -f \"$seed\"\n");
    let ended = Command::new("sh")
        .args(["-c", &script, "boot"])
        .args([root, &seed])
        .status();
    assert!(ended.unwrap().success());
}

#[test]
fn a_seed_leaves_nothing_of_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    fs::create_dir_all(root.join("etc/app")).unwrap();
    fs::write(root.join("etc/app/main.conf"), "packaged").unwrap();
    std::os::unix::fs::symlink("main.conf", root.join("etc/app/link.conf")).unwrap();
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();

    let (main, link, own) = ("etc/app/main.conf", "etc/app/link.conf", "etc/app/own.conf");
    plant(&root, &[(main, "first"), (link, "plain"), (own, "mine")]);
    assert_eq!(read(main).unwrap(), "first");
    // The same files with other content: what the package brought is still known.
    plant(&root, &[(main, "second"), (own, "mine")]);
    assert_eq!(read(main).unwrap(), "second");
    assert!(root.join(link).is_symlink());
    plant(&root, &[]);
    assert_eq!(read(main).unwrap(), "packaged");
    assert_eq!(read(own), None);
    // And it can begin anew.
    plant(&root, &[(main, "third")]);
    plant(&root, &[]);
    assert_eq!(read(main).unwrap(), "packaged");
}
