//! A socket in front of a server that cuts connections at their commits, or lets nothing through any more.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
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
    /// Before the server hears of it, and no connection is taken any more.
    ForGood,
}

/// A text that the proxy writes in place of another one of the same length.
pub(crate) type Rewrite = (&'static [u8], &'static [u8]);

/// What the connections of a proxy share.
struct Shared {
    next: AtomicU8,
    is_hushed: AtomicBool,
    is_closed: AtomicBool,
    /// The first message that contains this cuts its connection, and no other is made until the proxy resumes.
    cut_at: Mutex<Option<Vec<u8>>>,
    is_paused: AtomicBool,
    rewrite: Option<Rewrite>,
}

/// The proxy, for as long as the process lives.
pub(crate) struct Proxy {
    directory: tempfile::TempDir,
    shared: Arc<Shared>,
}

impl Proxy {
    /// A proxy for the server whose socket is in `server`.
    pub(crate) fn start(server: PathBuf) -> Proxy {
        Proxy::rewriting(server, None)
    }

    /// The same, which alters what clients say.
    pub(crate) fn rewriting(server: PathBuf, rewrite: Option<Rewrite>) -> Proxy {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let shared = Arc::new(Shared {
            next: AtomicU8::new(Cut::Never as u8),
            is_hushed: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            cut_at: Mutex::default(),
            is_paused: AtomicBool::new(false),
            rewrite,
        });
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (shared, server) = (Arc::clone(&of_thread), server.join(".s.PGSQL.5432"));
                if !shared.is_closed.load(Ordering::SeqCst) {
                    thread::spawn(move || serve(client.unwrap(), &server, &shared));
                }
            }
        });
        Proxy { directory, shared }
    }

    /// Lets nothing through any more, as a network does that is cut: nobody is told.
    pub(crate) fn hush(&self, is_hushed: bool) {
        self.shared.is_hushed.store(is_hushed, Ordering::SeqCst);
    }

    /// The next commit that passes is cut.
    pub(crate) fn cut_next(&self, cut: Cut) {
        self.shared.next.store(cut as u8, Ordering::SeqCst);
    }

    /// Whether the cut has happened.
    pub(crate) fn has_cut(&self) -> bool {
        self.shared.next.load(Ordering::SeqCst) == Cut::Never as u8
    }

    /// The next message that contains `text` does not pass, its connection is cut, and new ones wait for
    /// [`Proxy::resume`].
    pub(crate) fn cut_at(&self, text: &str) {
        *self.shared.cut_at.lock().unwrap() = Some(text.as_bytes().to_vec());
    }

    /// Whether a message was cut and the proxy has not resumed since.
    pub(crate) fn is_paused(&self) -> bool {
        self.shared.is_paused.load(Ordering::SeqCst)
    }

    /// Lets connections be made again.
    pub(crate) fn resume(&self) {
        self.shared.is_paused.store(false, Ordering::SeqCst);
    }

    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@/{database}?host={}", self.directory.path().display())
    }
}

impl Shared {
    /// Whether this message is where the connection is to be cut.
    fn cuts(&self, message: &[u8]) -> bool {
        let mut cut_at = self.cut_at.lock().unwrap();
        let is_there = |text: &Vec<u8>| message.windows(text.len()).any(|window| window == text.as_slice());
        let cuts = cut_at.take_if(|text| is_there(text)).is_some();
        if cuts {
            self.is_paused.store(true, Ordering::SeqCst);
        }
        cuts
    }
}

fn serve(mut client: UnixStream, server: &std::path::Path, shared: &Arc<Shared>) {
    while shared.is_paused.load(Ordering::SeqCst) {
        thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut upstream = UnixStream::connect(server).unwrap();
    let (mut answers, mut to_client) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
    let of_answers = Arc::clone(shared);
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = answers.read(&mut buffer) {
            let is_hushed = of_answers.is_hushed.load(Ordering::SeqCst);
            if !is_hushed && to_client.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        // An end that nobody hears of would be one.
        while of_answers.is_hushed.load(Ordering::SeqCst) {
            thread::sleep(std::time::Duration::from_millis(20));
        }
        drop(to_client.shutdown(std::net::Shutdown::Write));
    });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        if shared.is_hushed.load(Ordering::SeqCst) {
            continue;
        }
        if shared.cuts(&buffer[..length]) {
            break;
        }
        if let Some((from, to)) = shared.rewrite
            && let Some(at) = buffer[..length].windows(from.len()).position(|window| window == from)
        {
            buffer[at..at + to.len()].copy_from_slice(to);
        }
        // Only a change that is stored is reported to others.
        let commits = buffer[..length].windows(11).any(|window| window == b"pml_changes");
        let is_commit = commits && buffer[..length].ends_with(b"COMMIT\0");
        let cut =
            if is_commit { shared.next.swap(Cut::Never as u8, Ordering::SeqCst) } else { Cut::Never as u8 };
        if cut == Cut::ForGood as u8 {
            shared.is_closed.store(true, Ordering::SeqCst);
            break;
        }
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
