//! Runs the site until the user interrupts it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use super::router::router;
use super::site_state::SiteState;
use crate::support::terminal::interrupt::Interrupt;

/// Time between two looks whether the user interrupts the site.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);
/// Time for requests that are on their way when the user interrupts the site, and again for threads that
/// are still at work.
const MAX_STOP_TIME: Duration = Duration::from_secs(1);
/// Time after which a connection without a request is closed.
const MAX_IDLE_TIME: Duration = Duration::from_secs(20);
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
    let served = runtime.block_on(async move {
        let listener = TcpListener::bind(listen).await.with_context(|| {
            format!("--listen {listen}: the address cannot be used\nhint: choose another port")
        })?;
        let address = listener.local_addr().context("the server has no address")?;
        let site = Arc::new(listening(address)?);
        accept(listener, &router(site), &interrupt).await;
        Ok(())
    });
    // A thread that computes something must not keep the program alive. Nobody was told that a line of the
    // journal is saved if it is still being written.
    runtime.shutdown_timeout(MAX_STOP_TIME);
    served
}

/// Serves connections until the user interrupts the site.
async fn accept(listener: TcpListener, site: &Router, interrupt: &Interrupt) {
    let connections = GracefulShutdown::new();
    while !interrupt.is_requested() {
        let Ok(accepted) = timeout(INTERRUPT_INTERVAL, listener.accept()).await else { continue };
        let Ok((stream, _)) = accepted else {
            // For example too many open files, until other connections end.
            sleep(INTERRUPT_INTERVAL).await;
            continue;
        };
        let service = TowerToHyperService::new(site.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(MAX_IDLE_TIME)
            .serve_connection(TokioIo::new(stream), service);
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            // An error means that the visitor has disconnected.
            let _ = connection.await;
        });
    }
    drop(listener);
    // An unfinished request must not keep the site alive. Confirmed answers are on disk.
    let _ = timeout(MAX_STOP_TIME, connections.shutdown()).await;
}
