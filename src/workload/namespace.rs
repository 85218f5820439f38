//! The one namespace in which everything of a run lives, so that removing it removes all.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::kube::{Kubectl, KubectlError};

/// The namespace.
pub const NAMESPACE: &str = "rackrift";

/// How long one call of kubectl may take here.
const CALL: Duration = Duration::from_secs(15);

/// Why the namespace is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// kubectl failed.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// It is still there.
    #[error(
        "namespace {NAMESPACE} is still there {} s after it was deleted ({state}); kubectl get all -n {NAMESPACE} shows what holds it",
        after.as_secs()
    )]
    Stays {
        /// How long was waited.
        after: Duration,
        /// What kubectl says of it.
        state: String,
    },
}

/// Makes the namespace, empty: what an earlier run left is removed first.
///
/// # Errors
/// If it cannot be removed within `limit`, or not be made.
pub async fn create(kubectl: &Kubectl, limit: Duration) -> Result<(), NamespaceError> {
    remove(kubectl, limit).await?;
    kubectl.run(&["create", "namespace", NAMESPACE], None, CALL).await?;
    Ok(())
}

/// Removes the namespace with all that is in it, and waits until it is gone.
///
/// # Errors
/// If it is still there after `limit`: a pod on a node that is cut off holds it until the node is back.
pub async fn remove(kubectl: &Kubectl, limit: Duration) -> Result<(), NamespaceError> {
    let end = Instant::now() + limit;
    kubectl
        .run(&["delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false"], None, CALL)
        .await?;
    loop {
        let name = ["get", "namespace", NAMESPACE, "--ignore-not-found", "-o", "jsonpath={.status}"];
        let state = kubectl.run(&name, None, CALL).await?;
        if state.is_empty() {
            return Ok(());
        }
        if Instant::now() >= end {
            return Err(NamespaceError::Stays { after: limit, state: state.chars().take(400).collect() });
        }
        sleep(Duration::from_millis(250)).await;
    }
}
