//! Cuts a byte stream into lines in constant memory.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

/// Longest line that is kept, in bytes. Reports have short lines; a tool that prints megabytes
/// without a line end is not read into memory for it.
const LONGEST: usize = 1 << 16;

/// A line of output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Its text without the line end; bytes that are not UTF-8 are replaced.
    pub text: Cow<'a, str>,
    /// Whether all of it is there, line end included.
    pub complete: bool,
}

impl Line<'_> {
    /// An owned copy, short enough for a message.
    pub fn excerpt(&self) -> String {
        self.text.chars().take(200).collect()
    }
}

/// Calls `take` with every line; a carriage return before the line end belongs to the line end.
pub(super) fn each_line(reader: impl Read, mut take: impl FnMut(Line<'_>)) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(LONGEST, reader);
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let buffer = match reader.fill_buf() {
            Ok(buffer) => buffer,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        if buffer.is_empty() {
            break;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let room = LONGEST - line.len();
        too_long |= part.len() > room;
        line.extend_from_slice(&part[..part.len().min(room)]);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            let text = line.strip_suffix(b"\r").unwrap_or(&line);
            take(Line {
                text: String::from_utf8_lossy(text),
                complete: !too_long,
            });
            line.clear();
            too_long = false;
        }
    }
    if !line.is_empty() {
        take(Line {
            text: String::from_utf8_lossy(&line),
            complete: false,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        each_line(bytes, |line| {
            found.push((line.text.into_owned(), line.complete))
        })
        .unwrap();
        found
    }

    #[test]
    fn knows_a_whole_line_from_a_cut_one() {
        assert_eq!(
            lines(b"a\r\n\nb\xff\nc"),
            [
                ("a".to_owned(), true),
                (String::new(), true),
                ("b\u{fffd}".to_owned(), true),
                ("c".to_owned(), false),
            ]
        );
        assert_eq!(lines(b""), []);
    }

    #[test]
    fn keeps_the_start_of_a_line_without_end_and_goes_on() {
        let mut bytes = vec![b'x'; 3 * LONGEST];
        bytes.extend_from_slice(b"\nnext\n");
        let found = lines(&bytes);
        assert_eq!((found[0].0.len(), found[0].1), (LONGEST, false));
        assert_eq!(found[1], ("next".to_owned(), true));
    }
}
