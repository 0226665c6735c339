//! A socket in front of a server that cuts connections at their commits.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

/// When the next commit loses its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cut {
    Never,
    /// Before the server hears of it.
    Before,
    /// After the server has done it, and before the client hears of that.
    After,
}

/// The proxy, for as long as the process lives.
pub(crate) struct Proxy {
    directory: tempfile::TempDir,
    next: Arc<AtomicU8>,
}

impl Proxy {
    /// A proxy for the server whose socket is in `server`.
    pub(crate) fn start(server: PathBuf) -> Proxy {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let next = Arc::new(AtomicU8::new(Cut::Never as u8));
        let shared = Arc::clone(&next);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (next, server) = (Arc::clone(&shared), server.join(".s.PGSQL.5432"));
                thread::spawn(move || serve(client.unwrap(), &server, &next));
            }
        });
        Proxy { directory, next }
    }

    /// The next commit that passes is cut.
    pub(crate) fn cut_next(&self, cut: Cut) {
        self.next.store(cut as u8, Ordering::SeqCst);
    }

    /// Whether the cut has happened.
    pub(crate) fn has_cut(&self) -> bool {
        self.next.load(Ordering::SeqCst) == Cut::Never as u8
    }

    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@/{database}?host={}", self.directory.path().display())
    }
}

fn serve(mut client: UnixStream, server: &std::path::Path, next: &AtomicU8) {
    let mut upstream = UnixStream::connect(server).unwrap();
    let (mut answers, mut to_client) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || drop(std::io::copy(&mut answers, &mut to_client)));
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        // Only a change that is stored is reported to others.
        let commits = buffer[..length].windows(11).any(|window| window == b"pml_changes");
        let is_commit = commits && buffer[..length].ends_with(b"COMMIT\0");
        let cut = if is_commit { next.swap(Cut::Never as u8, Ordering::SeqCst) } else { Cut::Never as u8 };
        if cut == Cut::After as u8 {
            // The answer goes nowhere, and the server has done it all the same.
            drop(client.shutdown(std::net::Shutdown::Both));
        }
        if cut != Cut::Before as u8 && upstream.write_all(&buffer[..length]).is_err() {
            break;
        }
        if cut != Cut::Never as u8 {
            break;
        }
    }
    drop(client.shutdown(std::net::Shutdown::Both));
    if upstream.shutdown(std::net::Shutdown::Write).is_ok() {
        thread::sleep(std::time::Duration::from_millis(20));
    }
}
