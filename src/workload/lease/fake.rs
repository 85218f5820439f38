//! An API server that knows nothing but Leases, for tests: on a Unix socket, as a proxy is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// How a server misbehaves, besides what it does right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Not at all.
    Good,
    /// Every seventh write is done and never answered, every eleventh request is neither done nor answered.
    Lossy,
    /// Every fifth read shows the version before the newest.
    Stale,
}

/// All leases, shared by the servers of one cluster.
#[derive(Debug, Default)]
pub(super) struct Store {
    revision: u64,
    requests: u64,
    leases: BTreeMap<String, Vec<Value>>,
}

type Shared = Arc<Mutex<Store>>;

/// Starts a server over `store`; returns its socket.
pub(super) fn serve(dir: &Path, name: &str, store: &Shared, manner: Manner) -> PathBuf {
    let socket = dir.join(format!("{name}.sock"));
    let listener = UnixListener::bind(&socket).unwrap();
    let store = Arc::clone(store);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer_all(stream, Arc::clone(&store), manner));
        }
    });
    socket
}

async fn answer_all(stream: UnixStream, store: Shared, manner: Manner) {
    let mut stream = BufReader::new(stream);
    while let Some((method, path, body)) = request(&mut stream).await {
        let answer = store.lock().unwrap().answer(&method, &path, &body, manner);
        let Some((status, body)) = answer else { return };
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
        if stream.write_all((head + &body).as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn request(stream: &mut BufReader<UnixStream>) -> Option<(String, String, Vec<u8>)> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok()?;
    let (method, rest) = first.split_once(' ')?;
    let path = rest.split(' ').next()?.to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((method.to_owned(), path, body))
}

impl Store {
    /// Status and body; none if the connection is closed instead.
    fn answer(&mut self, method: &str, path: &str, body: &[u8], manner: Manner) -> Option<(u16, Value)> {
        self.requests += 1;
        let lossy = manner == Manner::Lossy;
        if lossy && self.requests.is_multiple_of(11) {
            return None;
        }
        let given: Value = serde_json::from_slice(body).unwrap_or_default();
        let name = match method {
            "POST" => given["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            _ => path.rsplit('/').next().unwrap_or_default().to_owned(),
        };
        let no = |code: u16, reason: &str| (code, json!({"kind": "Status", "code": code, "reason": reason}));
        let versions = self.leases.get(&name);
        let newest = versions.and_then(|v| v.last());
        if method == "GET" {
            let back = usize::from(manner == Manner::Stale && self.requests.is_multiple_of(5));
            let shown = versions.and_then(|v| v.get(v.len().checked_sub(1 + back)?)).or(newest);
            return Some(shown.map_or_else(|| no(404, "NotFound"), |lease| (200, lease.clone())));
        }
        let (code, uid) = match (method, newest) {
            ("POST", Some(_)) => return Some(no(409, "AlreadyExists")),
            ("POST", None) => (201, json!(format!("uid-{name}"))),
            (_, None) => return Some(no(404, "NotFound")),
            (_, Some(newest))
                if newest["metadata"]["resourceVersion"] != given["metadata"]["resourceVersion"] =>
            {
                return Some(no(409, "Conflict"));
            }
            (_, Some(newest)) => (200, newest["metadata"]["uid"].clone()),
        };
        self.revision += 1;
        let mut lease = given;
        lease["metadata"]["uid"] = uid;
        lease["metadata"]["namespace"] = json!(super::NAMESPACE);
        lease["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        self.leases.entry(name).or_default().push(lease.clone());
        if lossy && self.revision.is_multiple_of(7) { None } else { Some((code, lease)) }
    }
}
