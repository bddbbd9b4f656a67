//! A small FAT filesystem in memory: the same bytes for the same content.

use std::io::{self, Cursor, Write};

use fatfs::{FileSystem, FormatVolumeOptions, FsOptions, format_volume};

use super::seed::Entry;

/// The smallest volume; sizes are multiples of it.
const STEP: usize = 512 << 10;
/// Identifier of the volume, which would be random else.
const VOLUME_ID: u32 = 0x1ab4_1600;

/// Packs files into the top directory of a volume with this label.
pub(super) fn pack(label: &str, files: &[Entry]) -> Vec<u8> {
    let content: usize = files.iter().map(|file| file.content.len()).sum();
    // A volume that its files fill to a half at most has room for all that FAT keeps beside them.
    let size = (2 * content + 1).next_multiple_of(STEP);
    let mut disk = Cursor::new(vec![0; size]);
    // Writing to memory that is large enough does not fail.
    let _ = write(&mut disk, label, files);
    disk.into_inner()
}

fn write(disk: &mut Cursor<Vec<u8>>, label: &str, files: &[Entry]) -> io::Result<()> {
    let mut padded = [b' '; 11];
    for (to, from) in padded.iter_mut().zip(label.bytes()) {
        *to = from;
    }
    let options = FormatVolumeOptions::new()
        .volume_id(VOLUME_ID)
        .volume_label(padded);
    format_volume(&mut *disk, options)?;
    let filesystem = FileSystem::new(&mut *disk, FsOptions::new())?;
    for file in files {
        filesystem
            .root_dir()
            .create_file(&file.path)?
            .write_all(&file.content)?;
    }
    filesystem.unmount()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_is_packed_is_found_again_and_packed_the_same() {
        for length in [0, 10, 300 << 10, 3 << 20] {
            let files = ["meta-data", "network-config"].map(|path| Entry {
                path: path.to_owned(),
                mode: 0o644,
                content: vec![b'x'; length],
            });
            let bytes = pack("CIDATA", &files);
            assert_eq!(bytes, pack("CIDATA", &files));
            let volume = FileSystem::new(Cursor::new(bytes), FsOptions::new()).unwrap();
            assert_eq!(volume.volume_label(), "CIDATA");
            for file in &files {
                let mut content = Vec::new();
                let mut found = volume.root_dir().open_file(&file.path).unwrap();
                found.read_to_end(&mut content).unwrap();
                assert!(content == file.content, "{} of {length}", file.path);
            }
        }
    }
}
