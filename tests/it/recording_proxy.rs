//! Test helper: a TCP proxy that keeps every byte that a server sends.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A proxy in front of a server, which may stop and start again. It runs until the test ends.
pub(crate) struct RecordingProxy {
    /// Address for clients.
    pub(crate) address: SocketAddr,
    /// What the server sent, by connection.
    received: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl RecordingProxy {
    /// Starts a proxy in front of the server at an address.
    pub(crate) fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let recording = Arc::clone(&received);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // Without a server, the client sees a closed connection.
                if let Ok(server) = TcpStream::connect(server) {
                    forward(client, server, &recording);
                }
            }
        });
        Self { address, received }
    }

    /// Returns what the server sent so far, by connection.
    pub(crate) fn received(&self) -> Vec<Vec<u8>> {
        self.received.lock().unwrap().clone()
    }
}

/// Copies the bytes of a connection in both directions until one side closes it.
fn forward(client: TcpStream, server: TcpStream, received: &Arc<Mutex<Vec<Vec<u8>>>>) {
    let index = {
        let mut received = received.lock().unwrap();
        received.push(Vec::new());
        received.len() - 1
    };
    let received = Arc::clone(received);
    let (client_copy, server_copy) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || copy(client_copy, server_copy, |_| ()));
    std::thread::spawn(move || {
        copy(server, client, |bytes| received.lock().unwrap()[index].extend_from_slice(bytes));
    });
}

/// Copies bytes until the source ends, then closes both connections.
fn copy(mut from: TcpStream, mut to: TcpStream, mut record: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        record(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
