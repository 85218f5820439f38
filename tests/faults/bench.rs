//! A lab of namespaces with all that a fault needs round it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rackrift::fault::cut::{Cut, CutError};
use rackrift::fault::id::FaultId;
use rackrift::fault::journal::{Journal, unclosed};
use rackrift::fault::mark::Mark;
use rackrift::fault::packets::Packets;
use rackrift::fault::plan::{Plan, Request, Sides};
use rackrift::fault::probe::Method;
use rackrift::fault::shape::Shape;
use rackrift::fault::snapshot::snapshot;
use rackrift::fault::survey::survey;
use rackrift::host::remote::Remote;
use rackrift_checkers::history::FaultPhase;
use tokio::sync::mpsc;

use crate::support::heard::{Kind, LONG, Matrix, PORT};
use crate::support::namespaces::Lab;

/// A lab, a journal, and the marks of its faults.
pub(crate) struct Bench {
    pub(crate) lab: Arc<Lab>,
    pub(crate) remote: Arc<dyn Remote>,
    pub(crate) journal: Journal,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) marks: mpsc::UnboundedReceiver<Mark>,
    pub(crate) sender: mpsc::UnboundedSender<Mark>,
}

impl Bench {
    pub(crate) fn new(hosts: &[&str]) -> Self {
        Self::over(Lab::new(hosts))
    }

    pub(crate) fn over(lab: Arc<Lab>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (sender, marks) = mpsc::unbounded_channel();
        let journal = Journal::open(&folder.path().join("journal.jsonl")).unwrap();
        Self { remote: lab.clone(), lab, journal, folder, marks, sender }
    }

    pub(crate) fn request(&self, number: u16, shape: &Shape) -> Request {
        Request {
            id: FaultId::new("test", number).unwrap(),
            name: format!("{}-{number}", shape.name()),
            edges: shape.edges().unwrap(),
            targets: self.lab.targets(),
            protected: vec![],
            ttl: Duration::from_secs(30),
            sides: Sides::Both,
            packets: Packets::default(),
            flap: None,
        }
    }

    pub(crate) async fn plan(&self, request: &Request) -> Plan {
        Plan::build(request, &survey(&self.remote, &self.lab.hosts()).await).unwrap()
    }

    pub(crate) async fn try_prepare(&self, plan: Plan) -> Result<Cut, CutError> {
        Cut::prepare(self.remote.clone(), plan, self.journal.clone(), self.sender.clone()).await
    }

    pub(crate) async fn prepare(&self, plan: Plan) -> Cut {
        self.try_prepare(plan).await.unwrap()
    }

    /// The next mark of that kind; the test ends if it does not come.
    pub(crate) async fn next_mark_that(&mut self, is: impl Fn(&Mark) -> bool) -> Mark {
        let search = async {
            loop {
                let mark = self.marks.recv().await.unwrap();
                if is(&mark) {
                    return mark;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(30), search).await.expect("the mark comes")
    }

    /// Each host's snapshot, made comparable.
    pub(crate) async fn snapshots(&self) -> BTreeMap<String, String> {
        let all = snapshot(&self.remote, &self.lab.hosts()).await;
        all.into_iter().map(|(host, s)| (host, s.unwrap().normal)).collect()
    }

    pub(crate) fn all_rules(&self) -> BTreeMap<String, String> {
        self.lab.hosts().into_iter().map(|h| (h.clone(), self.lab.rules(&h))).collect()
    }

    pub(crate) fn open_in_journal(&self) -> usize {
        unclosed(&std::fs::read_to_string(self.folder.path().join("journal.jsonl")).unwrap()).len()
    }

    pub(crate) fn phases(&mut self) -> BTreeMap<FaultPhase, usize> {
        let mut counts = BTreeMap::new();
        while let Ok(mark) = self.marks.try_recv() {
            *counts.entry(mark.phase).or_default() += 1;
        }
        counts
    }

    pub(crate) fn left_behind(&self) -> Vec<String> {
        self.lab.hosts().into_iter().filter(|h| self.lab.run_dir(h).exists()).collect()
    }
}

/// What the plan promises, in the matrix's own terms.
pub(crate) fn promised(plan: &Plan, lab: &Lab) -> Matrix {
    let mut matrix = Matrix::new();
    for from in lab.hosts() {
        for to in lab.hosts().into_iter().filter(|to| *to != from) {
            for v6 in [false, true] {
                for (kind, heard) in [
                    (Kind::Udp, plan.heard(&from, &to, Method::Udp(PORT))),
                    (Kind::Tcp, plan.answered(&from, &to, Method::Tcp(PORT))),
                    (Kind::Ping, plan.answered(&from, &to, Method::Ping)),
                    (Kind::LongPing, plan.answered(&from, &to, Method::Long(LONG))),
                ] {
                    matrix.insert((from.clone(), to.clone(), kind, v6), heard);
                }
            }
        }
    }
    matrix
}

pub(crate) fn names(hosts: &[&str]) -> Vec<String> {
    hosts.iter().map(|h| (*h).to_owned()).collect()
}

pub(crate) fn racks() -> Shape {
    Shape::RackSplit { a: names(&["m1", "w1"]), b: names(&["m2", "w2"]) }
}
