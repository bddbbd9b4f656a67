//! Writes the archive format of initial RAM disks: `newc` cpio, as the kernel's
//! `Documentation/driver-api/early-userspace/buffer-format.rst` has it.

use std::io::{self, Write};

/// File type bits of a mode, as in `stat(2)`.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// A writer of one archive. All times are 0 and all owners root, so that the same content gives
/// the same bytes.
pub struct CpioWriter<W: Write> {
    out: W,
    written: u64,
    inode: u32,
}

impl<W: Write> CpioWriter<W> {
    /// Starts an archive.
    pub fn new(out: W) -> Self {
        Self {
            out,
            written: 0,
            inode: 0,
        }
    }

    /// Adds a directory. Parents come before what is in them.
    ///
    /// # Errors
    /// What the writer fails with, here and below.
    pub fn directory(&mut self, path: &str, permissions: u32) -> io::Result<()> {
        self.inode += 1;
        self.entry(path, DIRECTORY | permissions, b"")
    }

    /// Adds a file.
    pub fn file(&mut self, path: &str, permissions: u32, content: &[u8]) -> io::Result<()> {
        self.inode += 1;
        self.entry(path, REGULAR | permissions, content)
    }

    /// Adds a symbolic link.
    pub fn symlink(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.inode += 1;
        self.entry(path, SYMLINK | 0o777, target.as_bytes())
    }

    /// Ends the archive.
    pub fn finish(mut self) -> io::Result<W> {
        self.inode = 0;
        self.entry("TRAILER!!!", 0, b"")?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let too_large =
            |_| io::Error::new(io::ErrorKind::InvalidInput, format!("{path} is over 4 GiB"));
        let size = u32::try_from(content.len()).map_err(too_large)?;
        let name_size = u32::try_from(path.len() + 1).map_err(too_large)?;
        let links = 1;
        let fields = [
            self.inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0,
        ];
        let mut header = String::from("070701");
        for field in fields {
            header.push_str(&format!("{field:08X}"));
        }
        self.put(header.as_bytes())?;
        self.put(path.as_bytes())?;
        self.put(b"\0")?;
        self.pad()?;
        self.put(content)?;
        self.pad()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Names and contents begin at multiples of 4.
    fn pad(&mut self) -> io::Result<()> {
        let missing = self.written.next_multiple_of(4) - self.written;
        self.put(&[0; 4][..usize::try_from(missing).unwrap_or(0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lays_out_an_entry_as_the_kernel_reads_it() {
        let mut cpio = CpioWriter::new(Vec::new());
        cpio.file("ab", 0o644, b"hello").unwrap();
        let bytes = cpio.finish().unwrap();
        let header = "070701000000010000".to_owned()
            + "81A4"
            + &"0".repeat(16)
            + "00000001"
            + &"0".repeat(8);
        assert!(
            bytes.starts_with(header.as_bytes()),
            "{}",
            String::from_utf8_lossy(&bytes)
        );
        // 110 bytes of header, "ab\0" and 3 of padding, then the content at a multiple of 4.
        assert_eq!(&bytes[110..116], b"ab\0\0\0\0");
        assert_eq!(&bytes[116..124], b"hello\0\0\0");
        assert_eq!(bytes.len() % 4, 0);
        assert!(bytes.windows(10).any(|w| w == b"TRAILER!!!"));
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        let write = || {
            let mut cpio = CpioWriter::new(Vec::new());
            cpio.directory("bin", 0o755).unwrap();
            cpio.symlink("bin/sh", "busybox").unwrap();
            cpio.finish().unwrap()
        };
        assert_eq!(write(), write());
    }
}
