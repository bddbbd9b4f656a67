//! Which kernel modules a guest needs, in the order to load them in.

use std::io;

use super::rootfs::Rootfs;

/// A kernel module, ready to be loaded once those before it are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// File name, as in `virtio_net.ko`.
    pub file: String,
    /// Its content, not compressed.
    pub content: Vec<u8>,
}

/// Finds modules and all they depend on. What is built into the kernel is left out.
///
/// The modules themselves say what they need, so that `depmod` is not.
///
/// # Errors
/// When a module is neither there nor built in.
pub fn closure(root: &mut Rootfs, names: &[&str]) -> io::Result<Vec<Module>> {
    let built_in_list = root.matching("", "/modules.builtin").map(str::to_owned);
    let built_in = match built_in_list {
        Some(path) => String::from_utf8_lossy(&root.read(&path)?).into_owned(),
        None => String::new(),
    };
    let mut order = Vec::new();
    for name in names {
        add(root, &built_in, name, &mut order)?;
    }
    Ok(order)
}

fn add(root: &mut Rootfs, built_in: &str, name: &str, order: &mut Vec<Module>) -> io::Result<()> {
    let is_it = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or_default();
        file.split('.')
            .next()
            .is_some_and(|stem| stem.replace('-', "_") == name)
    };
    if order.iter().any(|m| is_it(&m.file)) || built_in.lines().any(is_it) {
        return Ok(());
    }
    let missing = || {
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("the kernel has no module {name}"),
        )
    };
    let path = root
        .paths()
        .find(|p| p.contains("/modules/") && p.contains(".ko") && is_it(p))
        .ok_or_else(missing)?;
    let path = path.to_owned();
    let content = plain(&path, root.read(&path)?)?;
    for needed in depends(&content) {
        add(root, built_in, &needed, order)?;
    }
    order.push(Module {
        file: format!("{name}.ko"),
        content,
    });
    Ok(())
}

/// Takes the compression off, which later releases put on.
fn plain(path: &str, content: Vec<u8>) -> io::Result<Vec<u8>> {
    use std::io::{Seek, Write};

    use crate::backend::tool::Tool;
    let program = match path.rsplit('.').next() {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => return Ok(content),
    };
    let mut file = tempfile::tempfile()?;
    file.write_all(&content)?;
    file.rewind()?;
    Tool::new(program)
        .arg("-dc")
        .stdin(file)
        .run()
        .map_err(io::Error::other)
}

/// What a module says it depends on: the `depends=` entry of its `.modinfo` section.
fn depends(module: &[u8]) -> Vec<String> {
    module
        .split(|b| *b == 0)
        .find_map(|entry| entry.strip_prefix(b"depends="))
        .map(|list| {
            String::from_utf8_lossy(list)
                .split(',')
                .filter(|n| !n.is_empty())
                .map(|n| n.replace('-', "_"))
                .collect()
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(depends: &str) -> Vec<u8> {
        [
            b"\x7fELF\0license=GPL\0depends=",
            depends.as_bytes(),
            b"\0name=x\0",
        ]
        .concat()
    }

    #[test]
    fn loads_what_is_needed_first_and_each_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("root.tar");
        let mut tar = tar::Builder::new(std::fs::File::create(&path).unwrap());
        for (name, content) in [
            ("lib/modules/6.1/kernel/net.ko", module("net-failover,ring")),
            ("lib/modules/6.1/kernel/net-failover.ko", module("")),
            ("lib/modules/6.1/kernel/ring.ko", module("core")),
            ("lib/modules/6.1/kernel/blk.ko", module("ring")),
            (
                "lib/modules/6.1/modules.builtin",
                b"kernel/core.ko\n".to_vec(),
            ),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            tar.append_data(&mut header, name, &content[..]).unwrap();
        }
        tar.finish().unwrap();
        let mut root = Rootfs::open(&path).unwrap();
        let order = closure(&mut root, &["net", "blk"]).unwrap();
        let names: Vec<_> = order.iter().map(|m| m.file.as_str()).collect();
        assert_eq!(names, ["net_failover.ko", "ring.ko", "net.ko", "blk.ko"]);
        assert!(
            closure(&mut root, &["sound"])
                .unwrap_err()
                .to_string()
                .contains("sound")
        );
    }
}
