//! One script over one channel, from its first byte to its outcome.

use std::sync::Arc;
use std::time::Duration;

use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::place::Place;
use crate::host::frame::{Ending, Mode, Sift, conclude, nonce, wrap};
use crate::host::remote::{Outcome, Script};

/// How long the end of a script may come after its limit: `timeout` first sends SIGTERM, then SIGKILL.
pub(super) const GRACE: Duration = Duration::from_secs(4);

impl Place {
    /// Runs a script to its end.
    pub(super) async fn run(&self, script: &Script) -> Outcome {
        let refused = |reason| Outcome::Refused { reason };
        let asked = Instant::now();
        let _turn = match self.turn().await {
            Ok(turn) => turn,
            Err(reason) => return refused(reason),
        };
        let channel = match self.channel(asked).await {
            Ok(channel) => channel,
            Err(reason) => return refused(reason),
        };
        let nonce = nonce();
        let text = wrap(&script.body, &nonce, script.limit, Mode::ToItsEnd);
        let mut out = Sift::new(&nonce, script.cap);
        let mut err = Sift::new(&nonce, script.cap);
        let started = Instant::now();
        let mut running = match Running::start(channel, self.shell, text, true).await {
            Ok(running) => running,
            Err(e) => return Outcome::Lost { reason: format!("the connection to {} broke: {e}", self.seat) },
        };
        let ending = match timeout(script.limit + GRACE, running.hear(&mut out, &mut err)).await {
            Ok(Ending::Cut(how)) => Ending::Cut(format!("the connection to {} {how}", self.seat)),
            Ok(ending) => ending,
            Err(_) => Ending::Deadline,
        };
        // The channel is given back before the turn is: a later one would find the host's channels taken.
        self.briefly(running.close()).await;
        conclude(out, err, ending, started.elapsed(), script.limit)
    }
}

/// A shell on a channel that is being sent its script.
pub(super) struct Running {
    pub(super) reader: ChannelReadHalf,
    writer: Arc<ChannelWriteHalf<Msg>>,
    sender: JoinHandle<()>,
}

impl Running {
    /// Starts the shell and the sending of the script; `whole`: its input ends with the script.
    pub(super) async fn start(
        channel: Channel<Msg>,
        shell: &str,
        text: String,
        whole: bool,
    ) -> Result<Self, russh::Error> {
        channel.exec(false, shell).await?;
        let (reader, writer) = channel.split();
        let writer = Arc::new(writer);
        // In a task of its own: what the host writes must be read while the script is still being sent.
        let sender = tokio::spawn({
            let writer = Arc::clone(&writer);
            async move {
                if writer.data_bytes(text.into_bytes()).await.is_ok() && whole {
                    let _ = writer.eof().await;
                }
            }
        });
        Ok(Self { reader, writer, sender })
    }

    /// Reads the output to its end marks, or to the end of the channel.
    async fn hear(&mut self, out: &mut Sift, err: &mut Sift) -> Ending {
        // Status, signal, end of data and closing come in any order; the last word counts.
        let mut ending = Ending::Cut("broke".to_owned());
        while let Some(message) = self.reader.wait().await {
            match message {
                ChannelMsg::Data { data } => out.feed(&data),
                ChannelMsg::ExtendedData { data, ext: 1 } => err.feed(&data),
                other => ending = said(&other).unwrap_or(ending),
            }
            if out.ended() && err.ended() {
                return Ending::Marked;
            }
        }
        ending
    }

    /// Ends the script's input and the channel. What is still to be sent is not sent: the host reads no more of it.
    pub(super) async fn close(&self) {
        self.sender.abort();
        let _ = self.writer.eof().await;
        let _ = self.writer.close().await;
    }
}

/// How the shell ended, if the message says that.
pub(super) fn said(message: &ChannelMsg) -> Option<Ending> {
    match message {
        ChannelMsg::ExitStatus { exit_status } => {
            Some(Ending::Exit(i32::try_from(*exit_status).unwrap_or(-1)))
        }
        ChannelMsg::ExitSignal { signal_name, .. } => Some(Ending::Signal(format!("{signal_name:?}"))),
        _ => None,
    }
}
