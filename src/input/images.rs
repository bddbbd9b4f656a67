//! Images: which files or recipes they are made of, and the key the store finds them by.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tera::Context;

use super::files::{self, InputFile};
use super::read::{Doc, Written};
use super::suggest;
use super::templates::Checker;
use super::topology::{
    BuildContentSpec, BuildFileSpec, BuildSpec, Ground, ImageSourceSpec, ImageSpec, PathSpec,
};
use crate::diag::Note;
use crate::model::{
    BuildFile, Bytes, Digest, DiskFormat, FileContent, Image, ImageRecipe, ImageSource, Name,
};

/// Size of a recipe's disk that says none.
const SIZE: Bytes = Bytes(3 << 30);

/// An image that was looked at.
pub(super) struct Found {
    /// None when a note says why.
    pub image: Option<Image>,
    /// Whether it has a disk.
    pub has_disk: bool,
    /// Virtual size of the disk, where it is known.
    pub size: Option<Bytes>,
}

/// Looks at images.
pub(super) struct Finder<'a, 's> {
    doc: &'a Doc,
    specs: HashMap<&'s str, &'s ImageSpec>,
    /// Images that a domain or a layer takes. Files of the others are not digested: they may be large.
    used: &'a BTreeSet<&'s Name>,
    /// Keys of images whose files are absent.
    known: &'a BTreeMap<PathBuf, Digest>,
    /// What a recipe's templates see.
    context: &'a Context,
    checker: Checker<'a>,
    found: BTreeMap<&'s Name, Found>,
    inputs: Vec<InputFile>,
}

impl<'a, 's> Finder<'a, 's> {
    /// A finder of these images.
    pub fn new(
        doc: &'a Doc,
        specs: &'s [ImageSpec],
        used: &'a BTreeSet<&'s Name>,
        known: &'a BTreeMap<PathBuf, Digest>,
        context: &'a Context,
        checker: Checker<'a>,
    ) -> Self {
        let specs = specs
            .iter()
            .map(|spec| (spec.name.value.as_str(), spec))
            .collect();
        Self {
            doc,
            specs,
            used,
            known,
            context,
            checker,
            found: BTreeMap::new(),
            inputs: Vec::new(),
        }
    }

    /// Looks at all of them; gives them, and the files that recipes copy.
    pub fn find_all(
        mut self,
        specs: &'s [ImageSpec],
    ) -> (BTreeMap<&'s Name, Found>, Vec<InputFile>) {
        for spec in specs {
            self.find(spec, &mut Vec::new());
        }
        (self.found, self.inputs)
    }

    /// Looks at an image. `above` are the layers that led here.
    fn find(&mut self, spec: &'s ImageSpec, above: &mut Vec<&'s Written<Name>>) -> &Found {
        let name = &spec.name.value;
        if !self.found.contains_key(name) {
            let mut found = match &spec.source {
                None => Found {
                    image: None,
                    has_disk: true,
                    size: None,
                },
                Some(ImageSourceSpec::Build(build)) => self.build(build, above),
                Some(ImageSourceSpec::Path(files)) => {
                    self.of_files(files, self.used.contains(name))
                }
                Some(ImageSourceSpec::Url { url, sha256 }) => {
                    if !spec.cloud_init {
                        self.warn_unseeded(spec);
                    }
                    from_url(url, *sha256)
                }
            };
            if let Some(image) = &mut found.image {
                image.cloud_init = spec.cloud_init;
            }
            self.found.insert(name, found);
        }
        &self.found[name]
    }

    fn warn_unseeded(&self, spec: &ImageSpec) {
        let spot = &spec.name.spot;
        let message = "nothing in a downloaded disk takes labrig's seed";
        let note = Note::warning(&spot.path, message).at(self.doc.place(spot));
        self.doc
            .push(note.hint("if it is a cloud image, say `cloud_init: true`"));
    }

    fn build(&mut self, spec: &'s BuildSpec, above: &mut Vec<&'s Written<Name>>) -> Found {
        let files = self.files(&spec.files);
        let size = spec.size.as_ref().map(|size| size.value);
        let recipe = match &spec.ground {
            Ground::Debian { suite } => files.map(|files| ImageRecipe::Debian {
                suite: suite.clone(),
                packages: spec.packages.clone(),
                files,
                run: spec.run.clone(),
                size: size.unwrap_or(SIZE),
            }),
            Ground::Micro { suite } => files.map(|files| ImageRecipe::Micro {
                suite: suite.clone(),
                files,
            }),
            Ground::Image(base) => {
                let base = self.base(spec, base, above);
                base.zip(files).map(|(base, files)| ImageRecipe::Layer {
                    base: Box::new(base),
                    packages: spec.packages.clone(),
                    files,
                    run: spec.run.clone(),
                    size,
                })
            }
        };
        match recipe {
            Some(recipe) => Found {
                has_disk: !recipe.is_micro(),
                size: recipe.size(),
                image: Some(Image::built(recipe)),
            },
            None => Found {
                image: None,
                has_disk: !matches!(spec.ground, Ground::Micro { .. }),
                size: None,
            },
        }
    }

    /// The image below a layer, when it can be one.
    fn base(
        &mut self,
        spec: &BuildSpec,
        base: &'s Written<Name>,
        above: &mut Vec<&'s Written<Name>>,
    ) -> Option<Image> {
        let doc = self.doc;
        let Some(&below) = self.specs.get(base.value.as_str()) else {
            let known = self.specs.keys().copied();
            let hint = suggest::advice(&base.value, "images in this file", known);
            let message = format!("unknown image {:?}", base.value.as_str());
            doc.push(doc.error(&base.spot, message).hint(hint));
            return None;
        };
        if let Some(start) = above.iter().position(|from| from.value == base.value) {
            let round = above[start..].iter().chain([&base]);
            let names: Vec<_> = round.map(|from| from.value.as_str()).collect();
            let message = format!("an image is a layer on itself: {}", names.join(" on "));
            let note = doc
                .error(&base.spot, message)
                .hint("let one of them start from a suite");
            doc.push(note.label(Some(doc.place(&above[start].spot)), "the round begins here"));
            return None;
        }
        if !matches!(below.source, None | Some(ImageSourceSpec::Build(_))) {
            let message = format!("image {:?} is not built by labrig", base.value.as_str());
            let note = doc.error(&base.spot, message);
            let note = note.hint("layers go on images that are; what files hold is not known");
            doc.push(note.label(Some(doc.place(&below.name.spot)), "the image"));
            return None;
        }
        above.push(base);
        let image = self.find(below, above).image.clone();
        above.pop();
        let image = image?;
        let ImageSource::Build(recipe) = &image.source else {
            return None;
        };
        if recipe.is_micro() {
            for (key, spot) in &spec.more_than_files {
                let message = format!("a micro image has no {key}");
                let note = doc
                    .error(spot, message)
                    .hint("files go into it; for more, take a Debian image");
                doc.push(note.label(Some(doc.place(&below.name.spot)), "the micro image"));
            }
        }
        if let (Some(size), Some(least)) = (&spec.size, recipe.size())
            && size.value < least
        {
            let message = format!(
                "a disk of {} is smaller than that of the image below, which has {least}",
                size.value
            );
            let note = doc
                .error(&size.spot, message)
                .hint("make it larger, or leave size out");
            doc.push(note.label(Some(doc.place(&below.name.spot)), "the image below"));
        }
        Some(image)
    }

    /// Files of a recipe; none when one of them cannot be had.
    fn files(&mut self, specs: &[BuildFileSpec]) -> Option<Vec<BuildFile>> {
        let mut taken: HashMap<&str, &BuildFileSpec> = HashMap::new();
        for spec in specs {
            if let Some(first) = taken.insert(&spec.to.value, spec) {
                let doc = self.doc;
                let message = format!("{} is written twice", spec.to.value);
                let note = doc.error(&spec.to.spot, message).hint("keep one of them");
                doc.push(note.label(Some(doc.place(&first.to.spot)), "first here"));
            }
        }
        // All of them, so that all notes are there.
        let files: Vec<_> = specs.iter().map(|spec| self.file(spec)).collect();
        files.into_iter().collect()
    }

    fn file(&mut self, spec: &BuildFileSpec) -> Option<BuildFile> {
        let content = match &spec.content {
            BuildContentSpec::Template { template, vars } => {
                FileContent::Text(self.checker.file(template, vars, self.context)?)
            }
            BuildContentSpec::From(written) => {
                let path = self.doc.beside(written);
                match files::read(&path) {
                    Ok(content) => {
                        let sha256 = Digest::of(&content);
                        self.inputs.push(InputFile {
                            path: path.clone(),
                            content,
                        });
                        FileContent::Path { path, sha256 }
                    }
                    Err(e) => {
                        let message = format!("{} cannot be read: {e}", written.value.display());
                        let hint =
                            format!("the path is relative to the topology: {}", path.display());
                        self.doc
                            .push(self.doc.error(&written.spot, message).hint(hint));
                        return None;
                    }
                }
            }
        };
        Some(BuildFile {
            to: spec.to.value.clone(),
            mode: spec.mode,
            content,
        })
    }

    fn of_files(&self, spec: &PathSpec, used: bool) -> Found {
        let doc = self.doc;
        let resolve = |w: &Option<Written<PathBuf>>| w.as_ref().map(|w| doc.beside(w));
        let (disk, kernel, initrd) = (
            resolve(&spec.disk),
            resolve(&spec.kernel),
            resolve(&spec.initrd),
        );
        let has_disk = disk.is_some();
        let image = |key, disk, kernel, initrd| Image {
            source: ImageSource::Path {
                disk,
                kernel,
                initrd,
            },
            key,
            cloud_init: false,
        };

        if let Some(primary) = disk.as_ref().or(kernel.as_ref())
            && let Some(&key) = self.known.get(primary)
            && !primary.exists()
        {
            return Found {
                image: Some(image(key, disk, kernel, initrd)),
                has_disk,
                size: None,
            };
        }

        let parts = [
            (&spec.disk, &disk),
            (&spec.kernel, &kernel),
            (&spec.initrd, &initrd),
        ];
        let mut digests = [None; 3];
        let mut wanted = spec.sha256.as_ref();
        let mut sound = true;
        for ((written, path), found) in parts.into_iter().zip(&mut digests) {
            let (Some(written), Some(path)) = (written, path) else {
                continue;
            };
            let wanted = wanted.take();
            match digest(path, used || wanted.is_some()) {
                Ok(None) => {}
                Ok(Some(digest)) => {
                    *found = Some(digest);
                    if let Some(wanted) = wanted.filter(|w| w.value != digest) {
                        let message = format!("{} has another content", written.value.display());
                        let hint = format!(
                            "its sha256 is {digest}: get the right file, or correct the digest"
                        );
                        let note = doc.error(&wanted.spot, message).hint(hint);
                        doc.push(note.label(Some(doc.place(&written.spot)), "this file"));
                        sound = false;
                    }
                }
                Err(e) => {
                    let message =
                        format!("image file {} cannot be read: {e}", written.value.display());
                    let hint = format!("the path is relative to the topology: {}", path.display());
                    doc.push(doc.error(&written.spot, message).hint(hint));
                    sound = false;
                }
            }
        }
        let size = disk
            .as_deref()
            .filter(|_| sound)
            .and_then(|path| virtual_size(path).ok());
        let [of_disk, of_kernel, of_initrd] = digests;
        let key = Image::path_key(of_disk, of_kernel, of_initrd);
        Found {
            image: sound.then(|| image(key, disk, kernel, initrd)),
            has_disk,
            size,
        }
    }
}

/// An image that is downloaded has the key that its file would have here.
fn from_url(url: &str, sha256: Digest) -> Found {
    let image = Image {
        source: ImageSource::Url {
            url: url.to_owned(),
            sha256,
        },
        key: Image::path_key(Some(sha256), None, None),
        cloud_init: false,
    };
    Found {
        image: Some(image),
        has_disk: true,
        size: None,
    }
}

/// The digest of a file when it is wanted; in any case whether the file can be read.
fn digest(path: &Path, wanted: bool) -> io::Result<Option<Digest>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = File::open(path)?;
    if !wanted {
        return Ok(None);
    }
    Digest::of_reader(file).map(Some)
}

/// Virtual size of a qcow2 or raw disk.
fn virtual_size(path: &Path) -> io::Result<Bytes> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut header = [0; DiskFormat::HEADER];
    if length >= DiskFormat::HEADER as u64 {
        file.read_exact(&mut header)?;
    }
    let (_, size) = DiskFormat::of_header(&header);
    Ok(size.unwrap_or(Bytes(length)))
}
