//! Tests of the store with a builder that is quick and can be told to fail.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::backend::images::builder::BuildError;
use crate::backend::images::download;
use crate::backend::images::download::tests::{Answer, Server};
use crate::ports::Package;

/// Builds a kernel whose content is the suite's name.
#[derive(Default)]
struct FakeBuilder {
    version: u32,
    builds: AtomicU32,
    fails: bool,
}

impl Builder for Arc<FakeBuilder> {
    fn fingerprint(&self) -> Digest {
        Digest::of(self.version.to_be_bytes())
    }

    fn space(&self, _: &ImageRecipe) -> Bytes {
        Bytes(1)
    }

    fn build(
        &self,
        recipe: &ImageRecipe,
        base: Option<&Path>,
        directory: &Path,
        _: &(dyn Fn(&str) + Sync),
    ) -> Result<Built, BuildError> {
        assert_eq!(
            std::fs::read_dir(directory).unwrap().count(),
            0,
            "the directory is empty at first"
        );
        self.builds.fetch_add(1, Ordering::SeqCst);
        let below = base.map_or_else(Vec::new, |base| {
            let mut below = fs_err::read(base.join("vmlinuz")).unwrap();
            below.extend(b" and more on ");
            below
        });
        let kernel = directory.join("some-kernel");
        fs_err::write(&kernel, [&below[..], recipe.suite().as_bytes()].concat())?;
        fs_err::write(directory.join("waste"), "waste")?;
        if self.fails {
            return Err(io::Error::other("the mirror is away").into());
        }
        let packages = vec![Package {
            name: "linux".to_owned(),
            version: "6.1".to_owned(),
        }];
        Ok(Built {
            kernel: Some(kernel),
            packages,
            ..Built::default()
        })
    }

    fn discard(&self, directory: &Path) -> Result<(), BuildError> {
        match std::fs::remove_dir_all(directory) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e.into()),
            _ => Ok(()),
        }
    }
}

struct World {
    directory: tempfile::TempDir,
    builder: Arc<FakeBuilder>,
}

impl World {
    fn new() -> Self {
        Self::with(FakeBuilder::default())
    }

    fn with(builder: FakeBuilder) -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            builder: Arc::new(builder),
        }
    }

    fn store(&self) -> Store {
        Store::with_builder(self.root().to_owned(), Box::new(Arc::clone(&self.builder)))
    }

    fn root(&self) -> &Path {
        self.directory.path()
    }

    fn builds(&self) -> u32 {
        self.builder.builds.load(Ordering::SeqCst)
    }

    fn left_in_work(&self) -> usize {
        std::fs::read_dir(self.root().join("work")).map_or(0, Iterator::count)
    }
}

fn micro(suite: &str) -> Image {
    Image::built(ImageRecipe::Micro {
        suite: suite.to_owned(),
        files: Vec::new(),
    })
}

fn ensure(store: &Store, image: &Image) -> Result<ImageFiles, PortError> {
    store.ensure(image, &|_| {})
}

fn chain(error: &PortError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// Changes a file that is read-only.
fn overwrite(path: &Path, content: &str) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn builds_once_and_finds_it_afterwards() {
    let world = World::new();
    let image = micro("bookworm");
    assert_eq!(world.store().find(image.key).unwrap(), None);
    let made = ensure(&world.store(), &image).unwrap();
    assert_eq!(ensure(&world.store(), &image).unwrap(), made);
    assert_eq!(world.store().find(image.key).unwrap(), Some(made.clone()));
    assert_eq!(world.builds(), 1);
    let kernel = made.kernel.unwrap();
    assert_eq!(std::fs::read(&kernel).unwrap(), b"bookworm");
    assert_eq!(
        std::fs::metadata(&kernel).unwrap().permissions().mode() & 0o777,
        0o444
    );
    assert_eq!(
        (made.disk, made.packages.len(), world.left_in_work()),
        (None, 1, 0)
    );
}

#[test]
fn a_layer_is_built_on_what_is_below_it_and_both_are_kept() {
    let world = World::new();
    let base = micro("bookworm");
    let layer = Image::built(ImageRecipe::Layer {
        base: Box::new(base.clone()),
        packages: Vec::new(),
        files: Vec::new(),
        run: vec!["x".to_owned()],
        size: None,
    });
    let made = ensure(&world.store(), &layer).unwrap();
    assert_eq!(
        std::fs::read(made.kernel.unwrap()).unwrap(),
        b"bookworm and more on bookworm"
    );
    assert!(world.store().find(base.key).unwrap().is_some());
    ensure(&world.store(), &layer).unwrap();
    assert_eq!((world.builds(), world.left_in_work()), (2, 0));
}

#[test]
fn a_failed_build_leaves_nothing_and_says_why() {
    let world = World::with(FakeBuilder {
        fails: true,
        ..FakeBuilder::default()
    });
    let error = ensure(&world.store(), &micro("bookworm")).unwrap_err();
    assert!(
        chain(&error).contains("the mirror is away"),
        "{}",
        chain(&error)
    );
    assert_eq!(world.left_in_work(), 0);
    assert_eq!(world.store().list().unwrap(), []);
}

#[test]
fn what_a_killed_build_left_is_swept() {
    let world = World::new();
    let image = micro("bookworm");
    let work = world.root().join("work").join(image.key.to_string());
    std::fs::create_dir_all(work.join("stage")).unwrap();
    std::fs::write(work.join("stage/disk.qcow2"), "half").unwrap();
    assert!(ensure(&world.store(), &image).is_ok());
    assert_eq!(world.left_in_work(), 0);
}

#[test]
fn a_sweep_takes_what_killed_builds_left_and_leaves_what_is_at_work() {
    let world = World::new();
    let (dead, alive) = (micro("bookworm"), micro("trixie"));
    for image in [&dead, &alive] {
        let work = world.root().join("work").join(image.key.to_string());
        std::fs::create_dir_all(work.join("stage")).unwrap();
    }
    let at_work = world.store().lock(alive.key, &|_| {}).unwrap();
    world.store().sweep().unwrap();
    assert_eq!(world.left_in_work(), 1);
    drop(at_work);
    world.store().sweep().unwrap();
    assert_eq!(world.left_in_work(), 0);
}

#[test]
fn a_build_killed_before_its_key_was_written_is_found_by_the_next() {
    let world = World::new();
    let image = micro("bookworm");
    let made = ensure(&world.store(), &image).unwrap();
    for name in names_in(&world.root().join("keys")).unwrap() {
        std::fs::remove_file(world.root().join("keys").join(name)).unwrap();
    }
    assert_eq!(world.store().find(image.key).unwrap(), None);
    assert_eq!(ensure(&world.store(), &image).unwrap(), made);
}

#[test]
fn many_at_once_build_once() {
    let world = World::new();
    let image = micro("bookworm");
    let made: Vec<_> = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| ensure(&world.store(), &image).unwrap()))
            .collect();
        takers
            .into_iter()
            .map(|taker| taker.join().unwrap())
            .collect()
    });
    assert!(made.iter().all(|files| *files == made[0]));
    assert_eq!(world.builds(), 1);
}

#[test]
fn a_changed_file_is_an_error_with_advice() {
    let world = World::new();
    let image = micro("bookworm");
    let kernel = ensure(&world.store(), &image).unwrap().kernel.unwrap();
    overwrite(&kernel, "BOOKWORM");
    let error = world.store().find(image.key).unwrap_err();
    assert!(
        chain(&error).contains("vmlinuz was changed") && error.hint.is_some(),
        "{}",
        chain(&error)
    );
    assert!(world.store().list().unwrap().is_empty());
    // Never silently built over: the lab that uses it may be running.
    assert!(ensure(&world.store(), &image).is_err());
}

#[test]
fn a_missing_file_is_an_error() {
    let world = World::new();
    let image = micro("bookworm");
    let kernel = ensure(&world.store(), &image).unwrap().kernel.unwrap();
    std::fs::remove_file(kernel).unwrap();
    assert!(world.store().find(image.key).is_err());
}

#[test]
fn a_copied_store_is_checked_by_content() {
    let world = World::new();
    let image = micro("bookworm");
    let kernel = ensure(&world.store(), &image).unwrap().kernel.unwrap();
    let copy = kernel.with_extension("copy");
    std::fs::copy(&kernel, &copy).unwrap();
    std::fs::rename(&copy, &kernel).unwrap();
    assert!(world.store().find(image.key).unwrap().is_some());
}

#[test]
fn a_changed_builder_does_not_find_what_its_elder_made() {
    let mut world = World::new();
    let image = micro("bookworm");
    ensure(&world.store(), &image).unwrap();
    world.builder = Arc::new(FakeBuilder {
        version: 1,
        ..FakeBuilder::default()
    });
    assert_eq!(world.store().find(image.key).unwrap(), None);
    ensure(&world.store(), &image).unwrap();
    assert_eq!(world.builds(), 1);
}

fn collect(
    world: &World,
    keep: &BTreeSet<Digest>,
    dry_run: bool,
) -> Result<Vec<crate::backend::images::Collected>, PortError> {
    world.store().collect(|| Ok(keep.clone()), dry_run)
}

#[test]
fn what_no_lab_links_is_collected() {
    let world = World::new();
    let (old, new) = (micro("bookworm"), micro("trixie"));
    let files = ensure(&world.store(), &old).unwrap();
    let kept = ensure(&world.store(), &new).unwrap();
    fs_err::write(world.root().join("work/abc.part"), "half a download").unwrap();
    let work = world.root().join("work").join(old.key.to_string());
    std::fs::create_dir_all(work.join("stage")).unwrap();

    let contents = world.store().contents(false).unwrap();
    assert_eq!(contents.len(), 2);
    let content = contents.iter().find(|c| c.digest == files.digest).unwrap();
    assert_eq!(content.keys, [old.key].into());
    assert_eq!(content.size.0, "bookworm".len() as u64);
    assert!(content.is_current && content.damage.is_none() && content.made.is_some());

    // Links of a lab say what stays.
    let links = world.root().join("lab/images");
    crate::backend::images::link(&links.join(new.key.short(16)), &kept).unwrap();
    let keep = crate::backend::images::linked(&links).unwrap();
    assert_eq!(keep, [kept.digest].into());

    let said = collect(&world, &keep, true).unwrap();
    assert!(files.kernel.as_ref().unwrap().exists());
    assert_eq!(collect(&world, &keep, false).unwrap(), said);
    let names: Vec<_> = said.iter().map(|c| c.name.clone()).collect();
    assert_eq!(names, [files.digest.to_string(), "abc.part".to_owned()]);
    assert!(!files.kernel.unwrap().exists());
    assert_eq!(world.store().find(old.key).unwrap(), None);
    assert_eq!(world.store().find(new.key).unwrap(), Some(kept));
    assert_eq!(world.left_in_work(), 0);
    assert_eq!(collect(&world, &keep, false).unwrap(), []);
}

#[test]
fn nothing_is_collected_while_somebody_holds_the_store() {
    let world = World::new();
    ensure(&world.store(), &micro("bookworm")).unwrap();
    let holds = [world.store().hold().unwrap(), world.store().hold().unwrap()];
    let error = collect(&world, &BTreeSet::new(), false).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotYet);
    drop(holds);
    let collected = collect(&world, &BTreeSet::new(), false).unwrap();
    assert_eq!(collected.len(), 1);
}

#[test]
fn a_change_that_does_not_show_is_found_when_all_is_read() {
    let world = World::new();
    let kernel = ensure(&world.store(), &micro("bookworm"))
        .unwrap()
        .kernel
        .unwrap();
    let before = std::fs::metadata(&kernel).unwrap().modified().unwrap();
    overwrite(&kernel, "BOOKWORM");
    let file = std::fs::File::options().write(true).open(&kernel).unwrap();
    file.set_modified(before).unwrap();
    for (all, damaged) in [(false, false), (true, true)] {
        let contents = world.store().contents(all).unwrap();
        assert_eq!(contents[0].damage.is_some(), damaged);
    }
}

/// An image of files in a directory, with the key that goes with them.
fn of_files(disk: Option<&Path>, kernel: Option<&Path>) -> Image {
    let digest = |path: Option<&Path>| path.map(|path| Digest::of(std::fs::read(path).unwrap()));
    let source = ImageSource::Path {
        disk: disk.map(Path::to_owned),
        kernel: kernel.map(Path::to_owned),
        initrd: None,
    };
    Image {
        key: Image::path_key(digest(disk), digest(kernel), None),
        source,
        cloud_init: false,
    }
}

#[test]
fn imports_are_copies() {
    let world = World::new();
    let kernel = world.root().join("mine");
    std::fs::write(&kernel, "kernel").unwrap();
    let image = of_files(None, Some(&kernel));
    let files = ensure(&world.store(), &image).unwrap();
    std::fs::write(&kernel, "another").unwrap();
    assert_eq!(std::fs::read(files.kernel.unwrap()).unwrap(), b"kernel");
    assert!(world.store().find(image.key).unwrap().is_some());
    assert_eq!(world.builds(), 0);
}

#[test]
fn an_import_that_is_not_what_was_checked_is_refused() {
    let world = World::new();
    let kernel = world.root().join("mine");
    std::fs::write(&kernel, "kernel").unwrap();
    let image = of_files(None, Some(&kernel));
    std::fs::write(&kernel, "another").unwrap();
    let error = ensure(&world.store(), &image).unwrap_err();
    assert!(chain(&error).contains("changed since"), "{}", chain(&error));
}

fn qemu_img(args: &[&str], path: &Path, size: &str) {
    let status = std::process::Command::new("qemu-img")
        .args(args)
        .arg(path)
        .arg(size)
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn disks_become_or_stay_qcow2() {
    let world = World::new();
    for format in ["raw", "qcow2"] {
        let disk = world.root().join(format);
        qemu_img(&["create", "-q", "-f", format], &disk, "1M");
        let files = ensure(&world.store(), &of_files(Some(&disk), None)).unwrap();
        assert!(
            std::fs::read(files.disk.unwrap())
                .unwrap()
                .starts_with(b"QFI\xfb"),
            "{format}"
        );
    }
}

#[test]
fn a_disk_that_needs_another_file_is_refused() {
    let world = World::new();
    let (base, disk) = (world.root().join("base"), world.root().join("overlay"));
    qemu_img(&["create", "-q", "-f", "qcow2"], &base, "1M");
    qemu_img(
        &[
            "create",
            "-q",
            "-f",
            "qcow2",
            "-b",
            base.to_str().unwrap(),
            "-F",
            "qcow2",
        ],
        &disk,
        "1M",
    );
    let error = ensure(&world.store(), &of_files(Some(&disk), None)).unwrap_err();
    assert!(
        chain(&error).contains("depends on another file") && error.hint.is_some(),
        "{}",
        chain(&error)
    );
}

#[test]
fn a_compressed_disk_is_refused() {
    let world = World::new();
    let disk = world.root().join("disk.raw.xz");
    std::fs::write(&disk, b"\xfd7zXZ\0 and so on").unwrap();
    let error = ensure(&world.store(), &of_files(Some(&disk), None)).unwrap_err();
    assert!(chain(&error).contains("compressed, by xz"), "{error:?}");
}

#[test]
fn a_download_is_made_once_and_is_the_same_as_the_file() {
    let (world, content) = (World::new(), download::tests::content());
    let server = Server::start(&[Answer::Cut(300_000), Answer::Well]);
    let sha256 = Digest::of(&content);
    let image = Image {
        source: ImageSource::Url {
            url: format!("{}/disk.raw", server.address),
            sha256,
        },
        key: Image::path_key(Some(sha256), None, None),
        cloud_init: true,
    };
    let made: Vec<_> = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| ensure(&world.store(), &image).unwrap()))
            .collect();
        takers.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(made.iter().all(|files| *files == made[0]));
    assert_eq!(server.ranges(), [None, Some(300_000)]);
    assert_eq!(world.left_in_work(), 0);

    let disk = world.root().join("disk.raw");
    std::fs::write(&disk, content).unwrap();
    let from_file = of_files(Some(&disk), None);
    assert_eq!(
        world.store().find(from_file.key).unwrap().as_ref(),
        made.first()
    );
}
