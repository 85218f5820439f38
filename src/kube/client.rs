//! One HTTP connection to one API server, through the Unix socket of its `kubectl proxy`.
//!
//! # Invariants
//! * One connection a client, one request at a time, nothing is retried: what a client saw is what happened to
//!   its one request. A connection that turns out closed before any byte of the request was written is opened
//!   anew once, because then no request was made.
//! * Each request has a deadline; when it passes, the connection is dropped, and the answer is "none came".
//!
//! HTTP/1.1 by hyper on a connection of our own, not a pooling client, because a pool hides on which connection a
//! request was, and retries.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Method, Response};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Largest answer that is read, bytes.
const BODY_CAP: usize = 16 << 20;

/// A request to an API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// GET, POST, PUT, DELETE.
    pub method: Method,
    /// Path and query, such as `/api/v1/nodes?limit=1`.
    pub path: String,
    /// The body, JSON; empty for none.
    pub body: Bytes,
}

impl Request {
    /// A GET of that path.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), body: Bytes::new() }
    }
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A whole answer came.
    Came {
        /// HTTP status.
        status: u16,
        /// The whole body.
        body: Bytes,
    },
    /// The proxy's socket refused the connection, or closed it before the request was written.
    NotSent {
        /// The system's word.
        cause: String,
    },
    /// The request, or a part of it, was written, and no whole answer came.
    Broken {
        /// What broke.
        cause: String,
    },
    /// No whole answer came in time.
    Late {
        /// The time that passed.
        after: Duration,
    },
}

/// A client: at most one connection.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    connection: Option<Connection>,
}

#[derive(Debug)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Closes the socket even if an answer is still outstanding, so that the proxy gives the request up.
        self.driver.abort();
    }
}

impl Client {
    /// A client of the proxy at `socket`; it connects at its first request.
    #[must_use]
    pub fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), connection: None }
    }

    /// Sends one request and waits for its whole answer, at most `limit`.
    pub async fn send(&mut self, request: &Request, limit: Duration) -> Answer {
        let end = Instant::now() + limit;
        let late = Answer::Late { after: limit };
        let mut connection = match self.connection.take() {
            Some(open) => open,
            None => match timeout_at(end, Connection::open(&self.socket)).await {
                Ok(Ok(new)) => new,
                Ok(Err(cause)) => return Answer::NotSent { cause },
                Err(_) => return Answer::NotSent { cause: "no connection in time".into() },
            },
        };
        let mut reopened = false;
        let response = loop {
            let asked = timeout_at(end, connection.ask(request)).await;
            match asked {
                Err(_) => return late,
                Ok(Ok(response)) => break response,
                Ok(Err(Unanswered::Written(cause))) => return Answer::Broken { cause },
                Ok(Err(Unanswered::NotWritten(cause))) if reopened => return Answer::NotSent { cause },
                Ok(Err(Unanswered::NotWritten(_))) => {
                    reopened = true;
                    connection = match timeout_at(end, Connection::open(&self.socket)).await {
                        Ok(Ok(new)) => new,
                        Ok(Err(cause)) => return Answer::NotSent { cause },
                        Err(_) => return Answer::NotSent { cause: "no connection in time".into() },
                    };
                }
            }
        };
        let status = response.status().as_u16();
        match timeout_at(end, Limited::new(response.into_body(), BODY_CAP).collect()).await {
            Err(_) => late,
            Ok(Err(e)) => Answer::Broken { cause: format!("status {status}, then its body broke: {e}") },
            Ok(Ok(whole)) => {
                self.connection = Some(connection);
                Answer::Came { status, body: whole.to_bytes() }
            }
        }
    }
}

/// Why there is no response.
enum Unanswered {
    /// No byte of the request was written.
    NotWritten(String),
    /// Some of it may have been.
    Written(String),
}

impl Connection {
    async fn open(socket: &Path) -> Result<Self, String> {
        let stream = UnixStream::connect(socket).await.map_err(|e| format!("proxy socket: {e}"))?;
        let (sender, driver) = handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
        // An error of the connection also comes out of the request that it breaks.
        let driver = tokio::spawn(async move {
            let _ = driver.await;
        });
        Ok(Self { sender, driver })
    }

    async fn ask(&mut self, request: &Request) -> Result<Response<Incoming>, Unanswered> {
        self.sender.ready().await.map_err(|e| Unanswered::NotWritten(e.to_string()))?;
        // kubectl proxy refuses every other Host.
        let mut built = hyper::Request::builder()
            .method(request.method.clone())
            .uri(&request.path)
            .header(HOST, "localhost")
            .header(USER_AGENT, concat!("rackrift/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/json");
        if !request.body.is_empty() {
            built = built.header(CONTENT_TYPE, "application/json");
        }
        let built = built
            .body(Full::new(request.body.clone()))
            .map_err(|e| Unanswered::NotWritten(format!("not a request: {e}")))?;
        self.sender.try_send_request(built).await.map_err(|mut e| {
            // hyper hands the request back only if it never began to write it.
            if e.take_message().is_some() {
                Unanswered::NotWritten(e.error().to_string())
            } else {
                Unanswered::Written(e.error().to_string())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;

    /// What a server does with one connection.
    #[derive(Clone, Copy)]
    enum Server {
        /// Closes it at once.
        Close,
        /// Answers `n` requests, then closes it.
        Answer(usize),
        /// Reads a request and closes.
        Swallow,
        /// Answers with half of a body and closes.
        Half,
        /// Reads a request and stays silent.
        Silent,
    }

    /// A server whose connections are treated in turn as told; what comes after is refused.
    fn serve(dir: &Path, plan: &'static [Server]) -> PathBuf {
        let path = dir.join("s.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let file = path.clone();
        tokio::spawn(async move {
            let mut silent = Vec::new();
            for (i, act) in plan.iter().enumerate() {
                let (mut s, _) = listener.accept().await.unwrap();
                if i + 1 == plan.len() {
                    std::fs::remove_file(&file).unwrap();
                }
                let mut buffer = [0; 4096];
                match act {
                    Server::Close => {}
                    Server::Answer(n) => {
                        for _ in 0..*n {
                            let _ = s.read(&mut buffer).await;
                            s.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
                        }
                    }
                    Server::Swallow => drop(s.read(&mut buffer).await),
                    Server::Half => {
                        let _ = s.read(&mut buffer).await;
                        s.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 20\r\n\r\nhalf").await.unwrap();
                    }
                    Server::Silent => {
                        let _ = s.read(&mut buffer).await;
                        silent.push(s);
                    }
                }
            }
        });
        path
    }

    async fn ask(client: &mut Client) -> Answer {
        client.send(&Request::get("/version"), Duration::from_millis(500)).await
    }

    fn ok() -> Answer {
        Answer::Came { status: 200, body: Bytes::from_static(b"ok") }
    }

    #[tokio::test]
    async fn one_connection_serves_many_requests() {
        let dir = tempfile::tempdir().unwrap();
        let mut c = Client::new(&serve(dir.path(), &[Server::Answer(3)]));
        for _ in 0..3 {
            assert_eq!(ask(&mut c).await, ok());
        }
    }

    #[tokio::test]
    async fn no_socket_is_definitely_not_sent() {
        let dir = tempfile::tempdir().unwrap();
        let answer = ask(&mut Client::new(&dir.path().join("none"))).await;
        assert!(matches!(answer, Answer::NotSent { .. }), "{answer:?}");
    }

    #[tokio::test]
    async fn a_request_that_was_read_and_not_answered_may_have_happened() {
        let dir = tempfile::tempdir().unwrap();
        let mut c = Client::new(&serve(dir.path(), &[Server::Swallow, Server::Answer(1)]));
        let answer = ask(&mut c).await;
        assert!(matches!(answer, Answer::Broken { .. }), "{answer:?}");
        // The next request has a connection of its own again.
        assert_eq!(ask(&mut c).await, ok());
    }

    #[tokio::test]
    async fn half_an_answer_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let answer = ask(&mut Client::new(&serve(dir.path(), &[Server::Half]))).await;
        assert!(matches!(&answer, Answer::Broken { cause } if cause.contains("status 201")), "{answer:?}");
    }

    #[tokio::test]
    async fn silence_is_late() {
        let dir = tempfile::tempdir().unwrap();
        let mut c = Client::new(&serve(dir.path(), &[Server::Silent, Server::Answer(1)]));
        assert_eq!(ask(&mut c).await, Answer::Late { after: Duration::from_millis(500) });
        assert_eq!(ask(&mut c).await, ok());
    }

    #[tokio::test]
    async fn a_connection_closed_while_idle_is_opened_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut c = Client::new(&serve(dir.path(), &[Server::Answer(1), Server::Answer(1)]));
        assert_eq!(ask(&mut c).await, ok());
        // Let the driver see the close: then no byte of the next request is written to the dead connection.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(ask(&mut c).await, ok());
    }

    #[tokio::test]
    async fn a_connection_closed_at_once_is_never_an_answer() {
        let dir = tempfile::tempdir().unwrap();
        let answer = ask(&mut Client::new(&serve(dir.path(), &[Server::Close]))).await;
        assert!(matches!(answer, Answer::NotSent { .. } | Answer::Broken { .. }), "{answer:?}");
    }
}
