//! Ctrl-C: the first stops cleanly, the second leaves at once and says what is left.

use super::error::Kind;
use crate::engine::Cancel;

/// Watches SIGINT and SIGTERM for as long as the runtime lives. `left` is what the second one says.
pub(super) fn watch(cancel: Cancel, left: String) {
    tokio::spawn(async move {
        next().await;
        eprintln!("stopping (once more to leave at once)");
        cancel.cancel();
        next().await;
        eprintln!("left at once; {left}");
        std::process::exit(Kind::Interrupted.code().into());
    });
}

async fn next() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut term) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = term.recv() => {}
    }
}
