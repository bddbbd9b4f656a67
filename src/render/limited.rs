//! What a template is filled in to, with an end to it: loops in a template may go on for ever.

use std::io::{self, Write};
use std::time::{Duration, Instant};

/// The longest text that a template may become.
const BYTES_MAX: usize = 8 << 20;
/// The longest time that filling it in may take; real ones take milliseconds.
const TIME_MAX: Duration = Duration::from_secs(10);
/// How many pieces are taken between two looks at the clock.
const PIECES: u32 = 256;

/// Takes what a template becomes, up to a limit.
pub(super) struct Limited {
    text: Vec<u8>,
    began: Instant,
    pieces: u32,
    /// What was too much, if anything was.
    pub exceeded: Option<&'static str>,
}

impl Limited {
    pub fn new() -> Self {
        Self {
            text: Vec::new(),
            began: Instant::now(),
            pieces: 0,
            exceeded: None,
        }
    }

    /// The text; templates and their values are UTF-8.
    pub fn into_text(self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }

    fn stop(&mut self, what: &'static str) -> io::Error {
        self.exceeded = Some(what);
        io::Error::other(what)
    }
}

impl Write for Limited {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.pieces = self.pieces.wrapping_add(1);
        if self.text.len() + piece.len() > BYTES_MAX {
            return Err(self.stop("becomes longer than 8 MiB"));
        }
        if self.pieces.is_multiple_of(PIECES) && self.began.elapsed() > TIME_MAX {
            return Err(self.stop("takes longer than 10 s to fill in"));
        }
        self.text.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
