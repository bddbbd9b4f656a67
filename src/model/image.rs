//! Images: where they come from, and the key the store finds them by.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Bytes, Digest, Digester};

/// A read-only disk, a kernel, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Where it comes from.
    pub source: ImageSource,
    /// What the store finds it by: the digest of the recipe, or of the files' content.
    pub key: Digest,
    /// Whether its guests take their identity from cloud-init (NoCloud) instead of labrig's seed.
    #[serde(default)]
    pub cloud_init: bool,
}

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageSource {
    /// Built by labrig from distribution packages.
    Build(ImageRecipe),
    /// Files that exist already. At least one of `disk` and `kernel` is there.
    Path {
        /// qcow2 or raw disk.
        disk: Option<PathBuf>,
        /// Kernel for direct boot; without it the firmware boots the disk.
        kernel: Option<PathBuf>,
        /// Initial RAM disk that goes with the kernel.
        initrd: Option<PathBuf>,
    },
    /// A qcow2 or raw disk that is downloaded; the firmware boots it.
    Url {
        /// Where it is, by `http` or `https`.
        url: String,
        /// Digest of the file there.
        sha256: Digest,
    },
}

/// Which files an image has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageParts {
    /// Whether there is a disk.
    pub disk: bool,
    /// Whether there is a kernel for direct boot.
    pub kernel: bool,
    /// Whether there is an initial RAM disk.
    pub initrd: bool,
}

/// How to build an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageRecipe {
    /// A Debian root filesystem with systemd and OpenSSH, on an ext4 disk.
    Debian {
        /// Release, as in `bookworm`.
        suite: String,
        /// Packages beside the base set; sorted, without repeats.
        packages: Vec<String>,
        /// Files put in after the packages, in order.
        #[serde(default)]
        files: Vec<BuildFile>,
        /// Shell commands run in it at last, in order.
        #[serde(default)]
        run: Vec<String>,
        /// Virtual size of the disk.
        size: Bytes,
    },
    /// A kernel and an initial RAM disk of busybox and dropbear; no disk, boots in seconds.
    Micro {
        /// Release the packages come from.
        suite: String,
        /// Files put in, in order.
        #[serde(default)]
        files: Vec<BuildFile>,
    },
    /// A copy of an image that labrig builds, with more in it.
    Layer {
        /// The image below.
        base: Box<Image>,
        /// Packages to add; sorted, without repeats.
        packages: Vec<String>,
        /// Files put in after the packages, in order.
        files: Vec<BuildFile>,
        /// Shell commands run in it at last, in order.
        run: Vec<String>,
        /// Virtual size of the disk; none: that of the image below.
        size: Option<Bytes>,
    },
}

/// A file that goes into an image when it is built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildFile {
    /// Absolute path in the image.
    pub to: String,
    /// Permission bits.
    pub mode: u32,
    /// What is in it.
    pub content: FileContent,
}

/// What a file of an image holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileContent {
    /// A text, rendered from a template.
    Text(String),
    /// What a file of this machine holds.
    Path {
        /// The file.
        path: PathBuf,
        /// Digest of what it is to hold.
        sha256: Digest,
    },
}

impl Image {
    /// An image that is built.
    pub fn built(recipe: ImageRecipe) -> Self {
        Self {
            key: recipe.key(),
            source: ImageSource::Build(recipe),
            cloud_init: false,
        }
    }

    /// Forgets where its files lie on this machine: the key says what is in them.
    pub fn forget_paths(&mut self) {
        match &mut self.source {
            ImageSource::Path {
                disk,
                kernel,
                initrd,
            } => {
                for path in [disk, kernel, initrd].into_iter().flatten() {
                    *path = PathBuf::new();
                }
            }
            ImageSource::Build(recipe) => recipe.forget_paths(),
            ImageSource::Url { .. } => {}
        }
    }

    /// The key of an image made of files: from the digests of those that there are. A file that is
    /// downloaded has the key that it would have if it were here.
    pub fn path_key(
        disk: Option<Digest>,
        kernel: Option<Digest>,
        initrd: Option<Digest>,
    ) -> Digest {
        [disk, kernel, initrd]
            .iter()
            .fold(Digester::default(), |digester, part| match part {
                Some(digest) => digester.field(digest.bytes()),
                None => digester.field(""),
            })
            .finish()
    }
}

impl ImageSource {
    /// The files that an image from here has, known before it is made.
    pub fn holds(&self) -> ImageParts {
        match self {
            Self::Build(recipe) => ImageParts {
                disk: !recipe.is_micro(),
                kernel: true,
                initrd: true,
            },
            Self::Path {
                disk,
                kernel,
                initrd,
            } => ImageParts {
                disk: disk.is_some(),
                kernel: kernel.is_some(),
                initrd: initrd.is_some(),
            },
            Self::Url { .. } => ImageParts {
                disk: true,
                kernel: false,
                initrd: false,
            },
        }
    }
}

impl ImageRecipe {
    /// The key of an image built from this recipe. The store adds which builder built it.
    pub fn key(&self) -> Digest {
        let digester = match self {
            Self::Debian {
                suite,
                packages,
                files,
                run,
                size,
            } => {
                let digester = Digester::default()
                    .field("debian")
                    .field(suite)
                    .field(size.0.to_be_bytes());
                additions(digester, packages, files, run)
            }
            Self::Micro { suite, files } => {
                let digester = Digester::default().field("micro").field(suite);
                additions(digester, &[], files, &[])
            }
            Self::Layer {
                base,
                packages,
                files,
                run,
                size,
            } => {
                let size = size.map_or_else(Vec::new, |size| size.0.to_be_bytes().to_vec());
                let digester = Digester::default()
                    .field("layer")
                    .field(base.key.bytes())
                    .field(size);
                additions(digester, packages, files, run)
            }
        };
        digester.finish()
    }

    fn forget_paths(&mut self) {
        let files = match self {
            Self::Debian { files, .. } | Self::Micro { files, .. } => files,
            Self::Layer { base, files, .. } => {
                base.forget_paths();
                files
            }
        };
        for file in files {
            if let FileContent::Path { path, .. } = &mut file.content {
                *path = PathBuf::new();
            }
        }
    }

    /// The image below, if it is a layer.
    pub fn base(&self) -> Option<&Image> {
        match self {
            Self::Layer { base, .. } => Some(base),
            Self::Debian { .. } | Self::Micro { .. } => None,
        }
    }

    /// The recipe at the bottom of all layers: a Debian or a micro one.
    pub fn ground(&self) -> &Self {
        match self.base().map(|base| &base.source) {
            Some(ImageSource::Build(recipe)) => recipe.ground(),
            _ => self,
        }
    }

    /// Whether it is a micro image, or a layer on one.
    pub fn is_micro(&self) -> bool {
        matches!(self.ground(), Self::Micro { .. })
    }

    /// Release of the distribution.
    pub fn suite(&self) -> &str {
        match self.ground() {
            Self::Debian { suite, .. } | Self::Micro { suite, .. } => suite,
            // What is below a layer is built, so that there is a ground.
            Self::Layer { .. } => "",
        }
    }

    /// Virtual size of its disk, if it has one.
    pub fn size(&self) -> Option<Bytes> {
        match self {
            Self::Debian { size, .. } => Some(*size),
            Self::Micro { .. } => None,
            Self::Layer { base, size, .. } => size.or_else(|| match &base.source {
                ImageSource::Build(recipe) => recipe.size(),
                ImageSource::Path { .. } | ImageSource::Url { .. } => None,
            }),
        }
    }

    /// Whether a package is asked for, by the recipe or one below it.
    pub fn has_package(&self, name: &str) -> bool {
        let (packages, base) = match self {
            Self::Debian { packages, .. } => (packages.as_slice(), None),
            Self::Micro { .. } => (&[][..], None),
            Self::Layer { base, packages, .. } => (packages.as_slice(), Some(base)),
        };
        let plain = |package: &String| package.split(['=', '/', ':']).next() == Some(name);
        packages.iter().any(plain)
            || base.is_some_and(|base| match &base.source {
                ImageSource::Build(recipe) => recipe.has_package(name),
                ImageSource::Path { .. } | ImageSource::Url { .. } => false,
            })
    }
}

fn additions(
    digester: Digester,
    packages: &[String],
    files: &[BuildFile],
    run: &[String],
) -> Digester {
    // Each list with its length, so that no two of them run together.
    let list = |digester: Digester, length: usize| digester.field((length as u64).to_be_bytes());
    let digester = packages
        .iter()
        .fold(list(digester, packages.len()), Digester::field);
    let digester = files
        .iter()
        .fold(list(digester, files.len()), |digester, file| {
            digester
                .field(&file.to)
                .field(file.mode.to_be_bytes())
                .field(file.content.digest().bytes())
        });
    run.iter().fold(list(digester, run.len()), Digester::field)
}

impl FileContent {
    /// Digest of the content.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Text(text) => Digest::of(text),
            Self::Path { sha256, .. } => *sha256,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn debian(suite: &str, packages: &[&str], size: u64) -> ImageRecipe {
        ImageRecipe::Debian {
            suite: suite.to_owned(),
            packages: packages.iter().map(|p| (*p).to_owned()).collect(),
            files: Vec::new(),
            run: Vec::new(),
            size: Bytes::mib(size),
        }
    }

    fn micro(files: Vec<BuildFile>) -> ImageRecipe {
        ImageRecipe::Micro {
            suite: "bookworm".to_owned(),
            files,
        }
    }

    fn layer(base: ImageRecipe, packages: &[&str], run: &[&str]) -> ImageRecipe {
        ImageRecipe::Layer {
            base: Box::new(Image::built(base)),
            packages: packages.iter().map(|p| (*p).to_owned()).collect(),
            files: Vec::new(),
            run: run.iter().map(|r| (*r).to_owned()).collect(),
            size: None,
        }
    }

    fn file(to: &str, mode: u32, text: &str) -> BuildFile {
        BuildFile {
            to: to.to_owned(),
            mode,
            content: FileContent::Text(text.to_owned()),
        }
    }

    #[test]
    fn keys_tell_recipes_apart() {
        let recipes = [
            debian("bookworm", &["a", "b"], 1),
            debian("bookworm", &["ab"], 1),
            debian("bookworm", &["a", "b"], 2),
            debian("trixie", &["a", "b"], 1),
            micro(vec![]),
            micro(vec![file("/a", 0o644, "x")]),
            micro(vec![file("/a", 0o755, "x")]),
            micro(vec![file("/a", 0o644, "y")]),
            layer(micro(vec![]), &[], &[]),
            layer(debian("bookworm", &[], 1), &["a"], &["b"]),
            layer(debian("bookworm", &[], 1), &["a", "b"], &[]),
            layer(debian("bookworm", &[], 1), &[], &["a", "b"]),
            layer(debian("bookworm", &["c"], 1), &[], &["a", "b"]),
        ];
        let keys: std::collections::BTreeSet<_> = recipes.iter().map(ImageRecipe::key).collect();
        assert_eq!(keys.len(), recipes.len());
    }

    #[test]
    fn a_layer_has_what_is_below_it() {
        let base = debian("trixie", &["xfsprogs", "jq=1.6"], 7);
        let recipe = layer(layer(base, &["a"], &[]), &["b"], &[]);
        assert_eq!(recipe.suite(), "trixie");
        assert_eq!(recipe.size(), Some(Bytes::mib(7)));
        assert!(!recipe.is_micro());
        for (package, has) in [
            ("xfsprogs", true),
            ("jq", true),
            ("a", true),
            ("b", true),
            ("c", false),
        ] {
            assert_eq!(recipe.has_package(package), has, "{package}");
        }
        assert!(layer(micro(vec![]), &[], &[]).is_micro());
    }

    #[test]
    fn what_an_image_holds_is_known_before_it_is_made() {
        let parts = |disk, kernel, initrd| ImageParts {
            disk,
            kernel,
            initrd,
        };
        let files = |disk: Option<&str>, kernel: Option<&str>| ImageSource::Path {
            disk: disk.map(PathBuf::from),
            kernel: kernel.map(PathBuf::from),
            initrd: None,
        };
        let url = ImageSource::Url {
            url: "http://a.example/b".to_owned(),
            sha256: Digest::of("x"),
        };
        for (source, held) in [
            (ImageSource::Build(micro(vec![])), parts(false, true, true)),
            (
                ImageSource::Build(layer(micro(vec![]), &[], &[])),
                parts(false, true, true),
            ),
            (
                ImageSource::Build(layer(debian("a", &[], 1), &[], &[])),
                parts(true, true, true),
            ),
            (files(Some("disk.raw"), None), parts(true, false, false)),
            (files(None, Some("vmlinuz")), parts(false, true, false)),
            (url, parts(true, false, false)),
        ] {
            assert_eq!(source.holds(), held, "{source:?}");
        }
    }

    #[test]
    fn a_file_counts_in_its_own_role() {
        let digest = Some(Digest::of("x"));
        assert_ne!(
            Image::path_key(digest, None, None),
            Image::path_key(None, digest, None)
        );
    }
}
