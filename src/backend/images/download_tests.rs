//! Tests of downloads against a server on loopback that misbehaves as it is told.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;

/// What is served: enough for several chunks.
pub fn content() -> Vec<u8> {
    (0..700_000_u32).map(|i| (i % 251) as u8).collect()
}

/// How the server answers one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// As it should: the whole, or the part that is asked for.
    Well,
    /// The whole, whatever is asked for.
    Whole,
    /// As it should, but the connection ends after so many bytes.
    Cut(usize),
    /// Another status and nothing else.
    Status(&'static str),
    /// Another file of the same length.
    Wrong,
    /// From another address.
    Redirect(&'static str),
    /// A part that was not asked for.
    OtherPart,
}

/// Path and range of every request.
type Requests = Mutex<Vec<(String, Option<usize>)>>;

/// A server that gives its answers one after the other, the last one for ever.
pub struct Server {
    pub address: String,
    requests: Arc<Requests>,
}

impl Server {
    pub fn start(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answers) = (Arc::clone(&requests), answers.to_vec());
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let number = seen.lock().unwrap().len();
                let answer = answers[number.min(answers.len() - 1)];
                let _ = serve(stream.unwrap(), answer, &seen);
            }
        });
        Self { address, requests }
    }

    /// Where the requests asked to begin.
    pub fn ranges(&self) -> Vec<Option<usize>> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|(_, range)| *range).collect()
    }
}

fn serve(mut stream: TcpStream, answer: Answer, seen: &Requests) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let path = lines.next().unwrap()?.split(' ').nth(1).unwrap().to_owned();
    let mut range = None;
    for line in lines {
        let line = line?.to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(start) = line.strip_prefix("range: bytes=") {
            range = start.trim_end_matches('-').parse().ok();
        }
    }
    seen.lock().unwrap().push((path, range));
    let mut all = content();
    if answer == Answer::Wrong {
        *all.last_mut().unwrap() ^= 1;
    }
    let start = range.filter(|_| answer != Answer::Whole);
    let head = match (answer, start) {
        (Answer::Status(status), _) => {
            all.clear();
            format!("HTTP/1.1 {status}\r\n")
        }
        (Answer::Redirect(to), _) => {
            all.clear();
            format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\n")
        }
        (_, Some(start)) if start >= all.len() => {
            all.clear();
            "HTTP/1.1 416 Range Not Satisfiable\r\n".to_owned()
        }
        (_, Some(start)) => {
            let said = if answer == Answer::OtherPart {
                0
            } else {
                start
            };
            let last = all.len() - 1;
            let head = format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {said}-{last}/{}\r\n",
                all.len()
            );
            all.drain(..start);
            head
        }
        _ => "HTTP/1.1 200 OK\r\n".to_owned(),
    };
    write!(
        stream,
        "{head}Content-Length: {}\r\nConnection: close\r\n\r\n",
        all.len()
    )?;
    let sent = match answer {
        Answer::Cut(after) => &all[..after.min(all.len())],
        _ => &all[..],
    };
    stream.write_all(sent)
}

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory }
    }

    fn partial(&self) -> PathBuf {
        self.directory.path().join("file.part")
    }

    fn download(&self, server: &Server) -> Result<(), PortError> {
        let url = format!("{}/image.qcow2", server.address);
        let mut download = Download::new(&url, Digest::of(content()), self.partial());
        download.pause = Duration::ZERO;
        download.run(&|_| {})
    }

    fn has(&self) -> Option<usize> {
        std::fs::read(self.partial()).ok().map(|bytes| bytes.len())
    }
}

#[test]
fn a_file_comes_whole_whatever_the_server_does() {
    use Answer as A;
    let cut = A::Cut(300_000);
    for (answers, ranges) in [
        (&[A::Well][..], &[None][..]),
        (&[cut, A::Well], &[None, Some(300_000)]),
        (&[cut, cut, A::Well], &[None, Some(300_000), Some(600_000)]),
        // A server without ranges begins again.
        (&[cut, A::Whole], &[None, Some(300_000)]),
        (&[A::Status("503 Busy"), A::Well], &[None, None]),
        (&[A::Cut(0), A::Cut(0), A::Well], &[None, None, None]),
        (
            &[
                A::Redirect("/elsewhere"),
                cut,
                A::Redirect("/elsewhere"),
                A::Well,
            ],
            &[None, None, Some(300_000), Some(300_000)],
        ),
    ] {
        let (server, place) = (Server::start(answers), Place::new());
        place.download(&server).unwrap();
        assert_eq!(
            std::fs::read(place.partial()).unwrap(),
            content(),
            "{answers:?}"
        );
        assert_eq!(server.ranges(), ranges, "{answers:?}");
    }
}

#[test]
fn an_error_says_what_is_wrong_and_what_stays() {
    use Answer as A;
    let cut = A::Cut(100);
    for (answers, text, kind, left) in [
        (
            &[A::Status("404 Not Found")][..],
            "answers 404",
            ErrorKind::Fatal,
            Some(0),
        ),
        (
            &[A::Status("500 No")],
            "answers 500",
            ErrorKind::Connection,
            Some(0),
        ),
        (&[A::Wrong], "wanted is", ErrorKind::Fatal, None),
        (&[cut, A::Wrong], "wanted is", ErrorKind::Fatal, None),
        (
            &[cut, A::Cut(0)],
            "ended after 100 bytes",
            ErrorKind::Connection,
            Some(100),
        ),
        (
            &[cut, A::OtherPart],
            "another part",
            ErrorKind::Connection,
            Some(100),
        ),
        (
            &[A::Redirect("/again")],
            "the connection failed",
            ErrorKind::Fatal,
            Some(0),
        ),
    ] {
        let (server, place) = (Server::start(answers), Place::new());
        let error = place.download(&server).unwrap_err();
        let told = crate::ports::chain(&error);
        assert!(told.contains(text), "{answers:?}: {told}");
        assert!(told.starts_with("download http://127.0.0.1:"), "{told}");
        assert_eq!(
            (error.kind, place.has()),
            (kind, left),
            "{answers:?}: {told}"
        );
        assert!(error.hint.is_some());
        assert!(server.ranges().len() <= 7, "{answers:?}");
    }
}

#[test]
fn another_process_goes_on_with_what_is_there() {
    let (server, place) = (Server::start(&[Answer::Well]), Place::new());
    std::fs::write(place.partial(), &content()[..200_000]).unwrap();
    place.download(&server).unwrap();
    assert_eq!(server.ranges(), [Some(200_000)]);

    // All of it is there: the server has no more, and the digest is enough.
    place.download(&server).unwrap();
    assert_eq!(server.ranges(), [Some(200_000), Some(700_000)]);

    // What is there belongs to another file: that shows at the end, and the next one begins anew.
    std::fs::write(place.partial(), "something else").unwrap();
    assert!(place.download(&server).is_err());
    place.download(&server).unwrap();
}

#[test]
fn nobody_at_the_address_is_an_error_that_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let server = Server {
        address,
        requests: Arc::default(),
    };
    let error = Place::new().download(&server).unwrap_err();
    let told = crate::ports::chain(&error);
    assert!(told.contains("efused"), "{told}");
    assert_eq!(error.kind, ErrorKind::Connection);
}
