//! Commands with a deadline, whose output can be waited for while they run.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Longest time for one command; building the micro image over a slow network is in it.
const LIMIT: Duration = Duration::from_secs(300);

/// What a stream gave so far.
#[derive(Clone, Default)]
struct Heard(Arc<(Mutex<Stream>, Condvar)>);

#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Heard {
    fn listen(mut stream: impl Read + Send + 'static) -> Self {
        let heard = Self::default();
        let to = heard.clone();
        thread::spawn(move || {
            let mut buffer = [0; 8 << 10];
            loop {
                let n = stream.read(&mut buffer).unwrap_or(0);
                let (state, changed) = &*to.0;
                let mut state = state.lock().unwrap();
                state.bytes.extend_from_slice(&buffer[..n]);
                state.is_over = n == 0;
                changed.notify_all();
                if n == 0 {
                    return;
                }
            }
        });
        heard
    }

    /// Waits until the text or the stream's end is there, or the deadline; gives whether it came.
    fn wait_for(&self, text: &str, deadline: Instant) -> bool {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        loop {
            if String::from_utf8_lossy(&state.bytes).contains(text) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.is_over || left.is_zero() {
                return false;
            }
            state = changed.wait_timeout(state, left).unwrap().0;
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.0.lock().unwrap().bytes).into_owned()
    }

    fn all(&self, deadline: Instant) -> String {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        while !state.is_over && Instant::now() < deadline {
            state = changed
                .wait_timeout(state, Duration::from_millis(100))
                .unwrap()
                .0;
        }
        String::from_utf8_lossy(&state.bytes).into_owned()
    }
}

/// A command that runs; killed when it is dropped.
pub struct Running {
    line: String,
    child: Child,
    stdout: Heard,
    stderr: Heard,
    began: Instant,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let line = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ");
        let mut child = command
            .spawn()
            .unwrap_or_else(|e| panic!("start {line}: {e}"));
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Self {
            line,
            child,
            stdout: Heard::listen(stdout),
            stderr: Heard::listen(stderr),
            began: Instant::now(),
        }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits until it says something on standard error.
    #[track_caller]
    pub fn until_it_says(&self, text: &str) -> &Self {
        assert!(
            self.stderr.wait_for(text, self.began + LIMIT),
            "{} did not say {text:?}, but:\n{}",
            self.line,
            self.stderr.text()
        );
        self
    }

    pub fn signal(&self, signal: Signal) -> &Self {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
        self
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        let deadline = self.began + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                panic!(
                    "{} did not end within {LIMIT:?}; it said:\n{}",
                    self.line,
                    self.stderr.text()
                );
            }
            thread::sleep(Duration::from_millis(5));
        };
        // What it started may hold the streams open.
        let grace = Instant::now() + Duration::from_secs(5);
        Ended {
            line: self.line.clone(),
            status,
            stdout: self.stdout.all(grace),
            stderr: self.stderr.all(grace),
            took: self.began.elapsed(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill(); // ended before is as good
        let _ = self.child.wait();
    }
}

/// A command that ended, and what is expected of it.
pub struct Ended {
    line: String,
    status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Ended {
    fn account(&self) -> String {
        let Self {
            line,
            status,
            stdout,
            stderr,
            took,
        } = self;
        format!(
            "{line}\n{status} after {took:.1?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}\n---"
        )
    }

    pub fn is_good(&self) -> bool {
        self.status.success()
    }

    /// Its exit code is this.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        let account = self.account();
        assert_eq!(self.status.code(), Some(code), "{account}");
        self
    }

    /// It was killed by this signal.
    #[track_caller]
    pub fn dies_of(self, signal: Signal) -> Self {
        let account = self.account();
        assert_eq!(self.status.signal(), Some(signal as i32), "{account}");
        self
    }

    /// This is on standard error.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(
            self.stderr.contains(text),
            "no {text:?} in what this said: {}",
            self.account()
        );
        self
    }

    /// This is not on standard error.
    #[track_caller]
    pub fn does_not_say(self, text: &str) -> Self {
        assert!(
            !self.stderr.contains(text),
            "{text:?} is in what this said: {}",
            self.account()
        );
        self
    }

    /// This is on standard output.
    #[track_caller]
    pub fn prints(self, text: &str) -> Self {
        assert!(
            self.stdout.contains(text),
            "no {text:?} in what this printed: {}",
            self.account()
        );
        self
    }

    /// A line with these words is on standard output, however they are spaced.
    #[track_caller]
    pub fn prints_row(self, words: &str) -> Self {
        let is_row = |line: &str| line.split_whitespace().eq(words.split_whitespace());
        assert!(
            self.stdout.lines().any(is_row),
            "no row {words:?} in what this printed: {}",
            self.account()
        );
        self
    }

    /// Its standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.account()))
    }
}
