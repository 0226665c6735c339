//! The walls, from inside.

use expect_test::expect;

use crate::host::{block_on, program, settings};
use crate::tests;
use pml_sandbox::{WorkerEvent, WorkerPool, available_walls};

tests![a_broken_worker_can_do_nothing, asking_does_not_confine];

fn a_broken_worker_can_do_nothing() {
    let told = block_on(async {
        let pool = WorkerPool::start(settings(&["evil-worker", "breach"])).unwrap();
        let mut worker = pool.take_worker().await.unwrap();
        worker.begin_program(&program("return 1"));
        match worker.next_event().await.unwrap() {
            WorkerEvent::Console { text, .. } => text,
            other => panic!("{other:?}"),
        }
    });
    expect![[r#"
        missing []
        open refused
        openat2 refused
        stat refused
        unlink refused
        socket refused
        unix socket refused
        connect refused
        sendmsg refused
        recvmsg refused
        execve refused
        fork refused
        clone3 refused
        ptrace refused
        process_vm_readv refused
        kill refused
        tgkill refused
        prctl refused
        setrlimit refused
        dup refused
        ioctl refused
        memfd_create refused
        io_uring refused
        bpf refused
        userfaultfd refused
        unshare refused
        mprotect refused
        mmap refused"#]]
    .assert_eq(&told);
}

fn asking_does_not_confine() {
    let before = available_walls();
    assert_eq!(available_walls(), before);
    assert!(std::fs::read("/proc/self/stat").is_ok());
    assert!(std::net::TcpListener::bind("127.0.0.1:0").is_ok());
}
