//! Links from labs to the images they use.

use std::io;
use std::path::Path;

use fs_err as fs;

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
    if let Some(parent) = link.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::remove_file(link) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e.into()),
        _ => {}
    }
    Ok(fs_err::os::unix::fs::symlink(directory, link)?)
}
