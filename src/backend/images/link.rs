//! Links from labs to the images they use.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use crate::backend::files;
use crate::model::Digest;
use crate::ports::{ErrorKind, ImageFiles, PortError};

/// Makes `link` lead to the directory of an image.
///
/// # Errors
/// When the image has no files, or the link cannot be made.
pub fn link(link: &Path, image: &ImageFiles) -> Result<(), PortError> {
    let file = image.disk.as_ref().or(image.kernel.as_ref());
    let Some(directory) = file.and_then(|file| file.parent()) else {
        let what = "link an image that has no files";
        return Err(PortError::new(ErrorKind::Fatal, what));
    };
    files::make_parent(link)?;
    files::remove_if_there(link)?;
    Ok(fs_err::os::unix::fs::symlink(directory, link)?)
}

/// Digests of the contents that links in a directory lead to.
///
/// # Errors
/// When the directory cannot be read.
pub fn linked(directory: &Path) -> io::Result<BTreeSet<Digest>> {
    let entries = match fs_err::read_dir(directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        read => read?,
    };
    let mut digests = BTreeSet::new();
    for entry in entries {
        let Ok(to) = std::fs::read_link(entry?.path()) else {
            continue;
        };
        let name = to.file_name().unwrap_or_default().to_string_lossy();
        digests.extend(name.parse::<Digest>());
    }
    Ok(digests)
}
