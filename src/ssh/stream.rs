//! A long-running script over a connection of its own, heard line by line.
//!
//! # Invariants
//! * The script's end follows the receiver's: its standard input ends, and what the wrapper does then is
//!   [`Mode::WhileHeard`]'s business. The same happens when this process dies. When the network dies, it happens as
//!   soon as sshd notices, at the latest at the script's own limit.

use std::time::Instant;

use russh::{ChannelMsg, Disconnect};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::connection::Session;
use super::place::Place;
use super::script::{GRACE, Running, said};
use crate::host::frame::{Ending, Mode, Sift, conclude, nonce, wrap};
use crate::host::lines::{QUEUE, Split};
use crate::host::remote::{Lines, Script};

impl Place {
    /// Starts a script and hands out its lines.
    pub(super) async fn stream(&self, script: &Script) -> Result<Lines, String> {
        let session = self.dial().await?;
        let patience = self.seat.patience;
        let broke = |e: russh::Error| format!("the connection to {} broke: {e}", self.seat);
        let slow = || format!("{} started no script within {:.0} s", self.seat, patience.open.as_secs_f64());
        let opening = timeout(patience.open, session.channel_open_session());
        let channel = opening.await.map_err(|_| slow())?.map_err(broke)?;
        let nonce = nonce();
        let text = wrap(&script.body, &nonce, script.limit, Mode::WhileHeard);
        let mut split = Split::new(&nonce, script.cap);
        let mut err = Sift::new(&nonce, script.cap);
        let started = Instant::now();
        let mut running = Running::start(channel, self.shell, text, false).await.map_err(broke)?;
        let first = match timeout(patience.open, begin(&mut running, &mut split, &mut err)).await {
            Ok(Ok(lines)) => lines,
            Ok(Err(ending)) => {
                return Err(
                    conclude(split.into_sift(), err, ending, started.elapsed(), script.limit).to_string()
                );
            }
            Err(_) => return Err(slow()),
        };
        let (lines, receiver) = mpsc::channel(QUEUE);
        let end = script.limit + GRACE;
        tokio::spawn(async move {
            let _ = timeout(end, hand_out(&mut running, split, first, &lines)).await;
            drop(lines);
            let _ = timeout(patience.open, leave(&running, &session)).await;
        });
        Ok(receiver)
    }
}

/// Reads until the script has begun, and gives the lines that came with that.
async fn begin(running: &mut Running, split: &mut Split, err: &mut Sift) -> Result<Vec<String>, Ending> {
    let mut ending = Ending::Cut("the connection broke".to_owned());
    while let Some(message) = running.reader.wait().await {
        match message {
            ChannelMsg::Data { data } => {
                let lines = split.feed(&data);
                if split.begun() {
                    return Ok(lines);
                }
            }
            ChannelMsg::ExtendedData { data, ext: 1 } => err.feed(&data),
            other => ending = said(&other).unwrap_or(ending),
        }
    }
    Err(ending)
}

/// Hands lines on until the script, the channel or the receiver ends.
async fn hand_out(running: &mut Running, mut split: Split, first: Vec<String>, lines: &mpsc::Sender<String>) {
    let mut ready = first;
    loop {
        for line in ready {
            if lines.send(line).await.is_err() {
                return;
            }
        }
        if split.ended() {
            return;
        }
        let message = tokio::select! {
            () = lines.closed() => return,
            message = running.reader.wait() => message,
        };
        ready = match message {
            Some(ChannelMsg::Data { data }) => split.feed(&data),
            Some(_) => Vec::new(),
            None => return,
        };
    }
}

/// Ends the script's input, and with it the script; then the connection.
async fn leave(running: &Running, session: &Session) {
    running.close().await;
    let _ = session.disconnect(Disconnect::ByApplication, "", "").await;
}
