//! Links from labs to the images they use.

use std::path::Path;

use crate::backend::files;
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
