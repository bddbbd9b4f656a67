//! Downloads one file by HTTP: what was fetched before is gone on with, and what comes is only good
//! with the digest that was asked for.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;
use ureq::http::StatusCode;
use ureq::http::header::{CONTENT_RANGE, RANGE};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

use crate::model::{Bytes, Digest};
use crate::ports::{ErrorKind, PortError};

/// Longest wait for a connection, and for anything to come over it.
const SILENCE: Duration = Duration::from_secs(60);
/// Redirects from one address to the next.
const REDIRECTS: u32 = 5;
/// Tries one after the other that bring nothing.
const TRIES: u32 = 3;
/// Time between tries.
const PAUSE: Duration = Duration::from_secs(2);
/// Time between two words about how far it is.
const NEWS: Duration = Duration::from_millis(500);
/// Bytes read at once.
const CHUNK: usize = 1 << 18;

/// Why a file was not downloaded.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The server refuses.
    #[error("the server answers {0}")]
    Status(StatusCode),
    /// The server sends another part than the one that was asked for.
    #[error("the server sends another part of the file than the one asked for")]
    Range,
    /// The way to the server, or the server.
    #[error("the connection failed")]
    Http(#[source] Box<ureq::Error>),
    /// It ended too early, too often.
    #[error("the connection ended after {got} bytes, time and again")]
    CutOff {
        /// Bytes that there are.
        got: u64,
    },
    /// Something else came.
    #[error("the file has sha256 {found}, wanted is {wanted}")]
    Digest {
        /// What it has.
        found: Digest,
        /// What was asked for.
        wanted: Digest,
    },
    /// It is larger than the room there is.
    #[error("the file has {needed} bytes, and there is room for {free}")]
    Space {
        /// What it takes.
        needed: u64,
        /// What there is.
        free: u64,
    },
    /// The file here.
    #[error(transparent)]
    File(io::Error),
}

/// A file to download.
pub struct Download<'a> {
    /// Where it is.
    pub url: &'a str,
    /// Its digest.
    pub sha256: Digest,
    /// Where what came so far is kept. The caller sees to it that nobody else writes there.
    pub partial: PathBuf,
    /// Time between tries.
    pub pause: Duration,
}

/// How a try ended.
enum Try {
    Whole,
    /// Cut off, with something or nothing new.
    Cut(Option<DownloadError>),
}

impl<'a> Download<'a> {
    /// A download that keeps what came so far in `partial`.
    pub fn new(url: &'a str, sha256: Digest, partial: PathBuf) -> Self {
        Self {
            url,
            sha256,
            partial,
            pause: PAUSE,
        }
    }

    /// Downloads it to its end. The file is left in `partial`.
    ///
    /// # Errors
    /// When it cannot be had. What came so far stays for the next one to go on with, unless it is
    /// wrong.
    pub fn run(&self, progress: &(dyn Fn(&str) + Sync)) -> Result<(), PortError> {
        self.attempt(progress).map_err(|error| self.explain(error))
    }

    fn attempt(&self, progress: &(dyn Fn(&str) + Sync)) -> Result<(), DownloadError> {
        let agent = agent();
        let mut idle = 0;
        while idle < TRIES {
            let before = self.length()?;
            match self.fetch(&agent, progress)? {
                Try::Whole => return self.verify(progress),
                Try::Cut(error) => {
                    idle = if self.length()? > before { 0 } else { idle + 1 };
                    if let (TRIES, Some(error)) = (idle, error) {
                        return Err(error);
                    }
                    if idle > 0 && idle < TRIES {
                        thread::sleep(self.pause);
                    }
                }
            }
        }
        let got = self.length()?;
        Err(DownloadError::CutOff { got })
    }

    fn length(&self) -> Result<u64, DownloadError> {
        match std::fs::metadata(&self.partial) {
            Ok(facts) => Ok(facts.len()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(e) => Err(DownloadError::File(e)),
        }
    }

    /// One request: all that is missing, or what comes before the connection ends.
    fn fetch(
        &self,
        agent: &ureq::Agent,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Try, DownloadError> {
        let mut file = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.partial)
            .map_err(DownloadError::File)?;
        let mut got = self.length()?;
        let mut request = agent.get(self.url);
        if got > 0 {
            request = request.header(RANGE, format!("bytes={got}-"));
        }
        let mut response = match request.call() {
            Ok(response) => response,
            Err(error @ (ureq::Error::BadUri(_) | ureq::Error::TooManyRedirects)) => {
                return Err(DownloadError::Http(Box::new(error)));
            }
            Err(error) => return Ok(Try::Cut(Some(DownloadError::Http(Box::new(error))))),
        };
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let range = response.headers().get(CONTENT_RANGE);
                let start = range.and_then(|range| range.to_str().ok());
                if !start.is_some_and(|start| start.starts_with(&format!("bytes {got}-"))) {
                    return Err(DownloadError::Range);
                }
            }
            // The server knows no ranges, or the file is another one by now.
            StatusCode::OK => {
                file.set_len(0).map_err(DownloadError::File)?;
                file.seek(SeekFrom::Start(0)).map_err(DownloadError::File)?;
                got = 0;
            }
            // What is here is the whole file, or longer than it: the digest tells.
            StatusCode::RANGE_NOT_SATISFIABLE if got > 0 => return Ok(Try::Whole),
            status if status.is_server_error() => {
                return Ok(Try::Cut(Some(DownloadError::Status(status))));
            }
            status => return Err(DownloadError::Status(status)),
        }
        let total = response.body().content_length().map(|rest| got + rest);
        if let Some(total) = total {
            self.check_space(total, got)?;
        }
        let mut body = response.body_mut().with_config().limit(u64::MAX).reader();
        let (mut chunk, mut told) = (vec![0; CHUNK], None::<Instant>);
        loop {
            if told.is_none_or(|last| last.elapsed() >= NEWS) {
                progress(&how_far(got, total));
                told = Some(Instant::now());
            }
            match body.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => {
                    file.write_all(&chunk[..n]).map_err(DownloadError::File)?;
                    got += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(Try::Cut(None)),
            }
        }
        match total {
            Some(total) if got < total => Ok(Try::Cut(None)),
            _ => Ok(Try::Whole),
        }
    }

    fn check_space(&self, total: u64, got: u64) -> Result<(), DownloadError> {
        let directory = self.partial.parent().unwrap_or(Path::new("."));
        let space = statvfs(directory).map_err(|e| DownloadError::File(e.into()))?;
        let free = space.blocks_available() * space.fragment_size();
        let needed = total.saturating_sub(got);
        if needed > free {
            return Err(DownloadError::Space { needed, free });
        }
        Ok(())
    }

    fn verify(&self, progress: &(dyn Fn(&str) + Sync)) -> Result<(), DownloadError> {
        progress("verifying the digest");
        let file = fs_err::File::open(&self.partial).map_err(DownloadError::File)?;
        let found = Digest::of_reader(file).map_err(DownloadError::File)?;
        if found == self.sha256 {
            return Ok(());
        }
        // Going on with it would never lead to the right file.
        fs_err::remove_file(&self.partial).map_err(DownloadError::File)?;
        Err(DownloadError::Digest {
            found,
            wanted: self.sha256,
        })
    }

    fn explain(&self, error: DownloadError) -> PortError {
        use DownloadError as E;
        let (kind, hint) = match &error {
            E::Status(status) if status.is_client_error() => (
                ErrorKind::Fatal,
                "check the address: open it in a browser, or ask curl for it",
            ),
            E::Digest { .. } => (
                ErrorKind::Fatal,
                "the file there is not the one the topology means: check the address and the digest",
            ),
            E::Space { .. } => (
                ErrorKind::Fatal,
                "free some space, or set LABRIG_STATE_DIR to a directory on a larger disk",
            ),
            E::Http(cause) if matches!(**cause, ureq::Error::TooManyRedirects) => (
                ErrorKind::Fatal,
                "take the address that the file itself has",
            ),
            E::File(_) => (ErrorKind::Fatal, "the image store must be writable"),
            E::Status(_) | E::Http(_) | E::CutOff { .. } | E::Range => (
                ErrorKind::Connection,
                "try again: what was downloaded is kept and gone on with",
            ),
        };
        PortError::new(kind, format!("download {}", self.url))
            .because(error)
            .hint(hint)
    }
}

fn agent() -> ureq::Agent {
    let tls = TlsConfig::builder()
        .provider(TlsProvider::NativeTls)
        .root_certs(RootCerts::PlatformVerifier)
        .build();
    ureq::Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects(REDIRECTS)
        .timeout_connect(Some(SILENCE))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE))
        .user_agent(concat!("labrig/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

fn how_far(got: u64, total: Option<u64>) -> String {
    let mib = |bytes: u64| Bytes(bytes).0 >> 20;
    match total {
        Some(total) => format!("downloading: {} of {} MiB", mib(got), mib(total)),
        None => format!("downloading: {} MiB", mib(got)),
    }
}

#[cfg(test)]
#[path = "download_tests.rs"]
pub mod tests;
