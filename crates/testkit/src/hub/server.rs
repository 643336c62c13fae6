//! A minimal HTTP/1.1 server: one thread a connection, one request a connection, everything asked is remembered.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `GET`, `HEAD`.
    pub method: String,
    /// The path with what stands behind `?`.
    pub path: String,
    /// Header lines, with small letters in front of the colon.
    headers: Vec<(String, String)>,
}

impl Asked {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The first byte that is wanted.
    pub fn from(&self) -> usize {
        let range = self.header("range").and_then(|range| range.strip_prefix("bytes="));
        range.and_then(|range| range.trim_end_matches('-').parse().ok()).unwrap_or(0)
    }
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Header lines, without `Content-Length`.
    pub headers: Vec<(String, String)>,
    /// The body; a `HEAD` is told its length alone.
    pub body: Vec<u8>,
    /// Send only so many bytes of the body.
    pub cut: Option<usize>,
    /// Then keep the connection open without a word until the server ends.
    pub stall: bool,
}

impl Reply {
    /// A body.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), ..Self::default() }
    }

    /// With a header line.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// A redirect.
    pub fn redirect(target: &str) -> Self {
        Self::new(302, "").with("Location", target)
    }

    /// Content, or the part of it that is asked for.
    pub fn content(asked: &Asked, content: &[u8]) -> Self {
        match asked.from() {
            0 => Self::new(200, content),
            from if from >= content.len() => Self::new(416, ""),
            from => {
                let (last, total) = (content.len() - 1, content.len());
                Self::new(206, &content[from..])
                    .with("Content-Range", &format!("bytes {from}-{last}/{total}"))
            }
        }
    }
}

type Handler = dyn Fn(&Asked) -> Reply + Send + Sync;

/// A server on a port of its own; it ends when dropped.
pub struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Starts to serve.
    pub fn start(handler: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
        let port = listener.local_addr().expect("it is bound").port();
        let (asked, stop) = (Arc::<Mutex<Vec<Asked>>>::default(), Arc::<AtomicBool>::default());
        let (log, ended, handler) =
            (asked.clone(), stop.clone(), Arc::<Box<Handler>>::new(Box::new(handler)));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let (log, ended, handler) = (log.clone(), ended.clone(), handler.clone());
                // A client that goes away in the middle is its own affair.
                std::thread::spawn(move || serve(stream, &log, &ended, &**handler).ok());
            }
        });
        Self { port, asked, stop }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the listener.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<Asked>>,
    ended: &AtomicBool,
    handler: &Handler,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut words = first.split(' ').map(str::to_string);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
    }
    let asked = Asked { method, path, headers };
    log.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
    let reply = handler(&asked);
    let mut head = format!(
        "HTTP/1.1 {} X\r\nConnection: close\r\nContent-Length: {}\r\n",
        reply.status,
        reply.body.len()
    );
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    if asked.method != "HEAD" {
        stream.write_all(&reply.body[..reply.cut.unwrap_or(reply.body.len()).min(reply.body.len())])?;
    }
    stream.flush()?;
    while reply.stall && !ended.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(10));
    }
    stream.shutdown(Shutdown::Both)
}
