//! Workers that have been taken over: what one could send, and what one could try on the system.

use std::ffi::CString;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;

/// Behaves as badly as `how` says, on standard input.
#[allow(unsafe_code)]
pub(crate) fn main(how: &str) -> ! {
    if how == "breach" {
        breach();
    }
    // SAFETY: standard input is the socket, and nothing else here uses it.
    let mut socket = unsafe { UnixStream::from_raw_fd(0) };
    let mut say = |bytes: &[u8]| socket.write_all(bytes).unwrap();
    match how {
        "silent" => {}
        "dies" => std::process::exit(3),
        "garbage" => say(b"GET / HTTP/1.1\r\n\r\n"),
        "huge" => say(&(1_u32 << 31).to_le_bytes()),
        "early" => say(&frame(&[1, 4])),
        "fault" => fault(),
        how => {
            say(&frame(&[0]));
            let mut program = [0; 4096];
            let read = socket.read(&mut program).unwrap();
            assert!(read > 0);
            after_begin(&mut socket, how);
        }
    }
    // Until it is killed.
    loop {
        std::thread::park();
    }
}

/// Frames are written out by hand here: a test of what is accepted must not use what writes it.
fn frame(payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_le_bytes().to_vec();
    frame.extend_from_slice(payload);
    frame
}

/// Event 0 with call, frame, point, context, handle and arguments.
fn call(call: u8, realm: u8, handle: u8, arguments: &str) -> Vec<u8> {
    let mut payload = vec![1, 0, call, realm, 0, 0, handle, u8::try_from(arguments.len()).unwrap()];
    payload.extend_from_slice(arguments.as_bytes());
    frame(&payload)
}

/// Event 8 with what was taken, calls and timers.
fn quiet(taken: u8) -> Vec<u8> {
    frame(&[1, 8, taken, 0, 0])
}

/// Event 12 with frame, point, context, seconds, nanoseconds, preview and whether that is all.
fn operation(realm: u8, json: &[u8]) -> Vec<u8> {
    let length = [(json.len() & 0x7f) as u8 | 0x80, (json.len() >> 7) as u8];
    frame(&[&[1, 12, realm, 1, 0, 0, 0][..], &length, json, &[1]].concat())
}

fn after_begin(socket: &mut UnixStream, how: &str) {
    let bytes = match how {
        "fine" => call(1, 0, 1, "{}"),
        "handle" => call(1, 0, 99, "{}"),
        "realm" => call(1, 1, 1, "{}"),
        "replayed" => [call(1, 0, 1, "{}"), call(1, 0, 1, "{}")].concat(),
        "skipped" => call(2, 0, 1, "{}"),
        "array" => call(1, 0, 1, "[]"),
        "no-json" => call(1, 0, 1, "{\"a\":}"),
        "no-text" => {
            let mut bytes = call(1, 0, 1, "{\"aaa\":1}");
            let at = bytes.len() - 5;
            bytes[at] = 0xff;
            bytes
        }
        "no-event" => frame(&[1, 200]),
        "left-over" => frame(&[1, 4, 0]),
        "ready-again" => frame(&[0]),
        "taken" => quiet(1),
        "twice-quiet" => [quiet(0), quiet(0)].concat(),
        "while-quiet" => [quiet(0), call(1, 0, 1, "{}")].concat(),
        "timer" => frame(&[1, 1, 2, 0]),
        "cleared" => frame(&[1, 2, 1]),
        "progress" => frame(&[&[1, 5][..], &f64::NAN.to_le_bytes(), &[0, 0]].concat()),
        "value" => frame(&[1, 9, 0, 1, b'{']),
        "console" => frame(&[&[1, 3, 0, 0, 0x80, 0x80, 0x08][..], &[b'x'; 1 << 17]].concat()),
        // Event 10 with frame, parent, program, point, context and arguments; event 11 with frame and value.
        "frame" => frame(&[1, 10, 1, 0, 0, 0, 0, 2, b'{', b'}']),
        "frame-end" => frame(&[1, 11, 1, 0, 1, b'1']),
        "preview" => operation(0, b"{"),
        "preview-long" => operation(0, format!("\"{}\"", "x".repeat(300)).as_bytes()),
        "preview-of-frame" => operation(1, b"1"),
        "operations" => operation(0, b"1").repeat(1_001),
        "half" => {
            socket.write_all(&call(1, 0, 1, "{}")[..6]).unwrap();
            std::process::exit(0);
        }
        "crash" => std::process::abort(),
        other => panic!("no such evil: {other}"),
    };
    socket.write_all(&bytes).unwrap();
}

/// Goes behind the walls and reads where there is nothing.
#[allow(unsafe_code)]
fn fault() -> ! {
    pml_sandbox::confine().unwrap();
    // SAFETY: not at all; it is to end the process.
    let got = unsafe { std::ptr::read_volatile(std::ptr::dangling::<u8>()) };
    std::process::exit(got.into())
}

/// Goes behind the walls and tries them; says the errors it got as the text of one console line.
#[allow(unsafe_code)]
fn breach() -> ! {
    let path = CString::new("/etc/passwd").unwrap();
    let parent = unsafe { libc::getppid() };
    // Memory that was writable before the walls went up.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    let walls = pml_sandbox::confine().unwrap();
    let mut tried = vec![format!("missing {:?}", walls.missing_walls())];
    let mut attempt = |name: &str, got: i64| {
        let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        tried.push(match (got, error) {
            (-1, libc::EPERM) => format!("{name} refused"),
            (-1, error) => format!("{name} failed with {error}"),
            (got, _) => format!("{name} GAVE {got}"),
        });
    };
    // SAFETY: every call is given valid pointers or none; they are meant to be refused.
    unsafe {
        attempt("open", i64::from(libc::open(path.as_ptr(), libc::O_RDONLY)));
        attempt("openat2", libc::syscall(libc::SYS_openat2, -100, path.as_ptr(), [0_u64; 3].as_ptr(), 24));
        attempt("stat", i64::from(libc::access(path.as_ptr(), 0)));
        attempt("unlink", i64::from(libc::unlink(path.as_ptr())));
        attempt("socket", i64::from(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0)));
        attempt("unix socket", i64::from(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)));
        attempt("connect", i64::from(libc::connect(0, std::ptr::null(), 0)));
        attempt("sendmsg", libc::syscall(libc::SYS_sendmsg, 0, 0, 0));
        attempt("recvmsg", libc::syscall(libc::SYS_recvmsg, 0, 0, 0));
        attempt("execve", i64::from(libc::execve(path.as_ptr(), std::ptr::null(), std::ptr::null())));
        attempt("fork", i64::from(libc::fork()));
        attempt("clone3", libc::syscall(libc::SYS_clone3, 0, 0));
        attempt("ptrace", libc::ptrace(libc::PTRACE_ATTACH, parent, 0, 0));
        attempt("process_vm_readv", libc::syscall(libc::SYS_process_vm_readv, parent, 0, 0, 0, 0, 0));
        attempt("kill", i64::from(libc::kill(parent, libc::SIGTERM)));
        attempt("tgkill", libc::syscall(libc::SYS_tgkill, parent, parent, libc::SIGTERM));
        attempt("prctl", i64::from(libc::prctl(libc::PR_SET_DUMPABLE, 1)));
        attempt("setrlimit", libc::syscall(libc::SYS_prlimit64, 0, libc::RLIMIT_AS, 0, 0));
        attempt("dup", i64::from(libc::dup(0)));
        attempt("ioctl", i64::from(libc::ioctl(0, libc::FIONREAD, 0)));
        attempt("memfd_create", libc::syscall(libc::SYS_memfd_create, path.as_ptr(), 0));
        attempt("io_uring", libc::syscall(libc::SYS_io_uring_setup, 1, 0));
        attempt("bpf", libc::syscall(libc::SYS_bpf, 0, 0, 0));
        attempt("userfaultfd", libc::syscall(libc::SYS_userfaultfd, 0));
        attempt("unshare", i64::from(libc::unshare(libc::CLONE_NEWUSER)));
        attempt("mprotect", i64::from(libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_EXEC)));
        let executable = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        attempt("mmap", executable as i64);
    }
    tell(&tried.join("\n"));
    std::process::exit(0)
}

/// Says it is ready, waits for a program, and prints `text` as if the program had.
#[allow(unsafe_code)]
fn tell(text: &str) {
    let length = text.len();
    let varint = [(length & 0x7f) as u8 | 0x80, (length >> 7) as u8];
    let said = frame(&[&[1, 3, 0, 1][..], &varint, text.as_bytes()].concat());
    let mut ignored = [0_u8; 4096];
    // SAFETY: descriptor 0 is the socket; the buffers live across the calls.
    unsafe {
        let ready = frame(&[0]);
        libc::write(0, ready.as_ptr().cast(), ready.len());
        libc::read(0, ignored.as_mut_ptr().cast(), ignored.len());
        libc::write(0, said.as_ptr().cast(), said.len());
        libc::read(0, ignored.as_mut_ptr().cast(), ignored.len());
    }
}
