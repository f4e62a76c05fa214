//! Runs the site until the user interrupts it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::router::router;
use super::site_state::SiteState;
use crate::support::terminal::interrupt::Interrupt;

/// Time between two looks whether the user interrupts the site.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);
/// Time for requests that are on their way when the user interrupts the site.
const MAX_STOP_TIME: Duration = Duration::from_secs(2);
/// Threads that wait for the disk.
const BLOCKING_THREADS: usize = 8;

/// Serves the site until the user interrupts it. `listening` gets the address, which has the port that
/// the system chose for port 0, and returns the state of the site.
///
/// # Errors
/// If the address cannot be used.
pub fn serve(
    listen: SocketAddr,
    interrupt: &Interrupt,
    listening: impl FnOnce(SocketAddr) -> Result<SiteState>,
) -> Result<()> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
        .context("cannot start the server")?;
    let interrupt = interrupt.clone();
    runtime.block_on(async move {
        let listener = TcpListener::bind(listen).await.with_context(|| {
            format!("--listen {listen}: the address cannot be used\nhint: choose another port")
        })?;
        let address = listener.local_addr().context("the server has no address")?;
        let site = Arc::new(listening(address)?);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = axum::serve(listener, router(site)).with_graceful_shutdown(async {
            let _ = stopped.await;
        });
        let mut serving = tokio::spawn(serving.into_future());
        while !interrupt.is_requested() && !serving.is_finished() {
            tokio::time::sleep(INTERRUPT_INTERVAL).await;
        }
        drop(stop);
        // An unfinished request must not keep the site alive. Confirmed answers are on disk.
        match tokio::time::timeout(MAX_STOP_TIME, &mut serving).await {
            Ok(result) => result.context("the server failed")?.context("the server failed"),
            Err(_) => Ok(()),
        }
    })
}
