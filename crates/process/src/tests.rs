use std::path::Path;
use std::time::{Duration, Instant};

use super::{Failure, Invocation, run};

fn shell(script: &str) -> Invocation {
    Invocation {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: "/".into(),
        input: Vec::new(),
        limit: Duration::from_secs(20),
        grace: Duration::from_millis(200),
    }
}

/// Waits until the process that wrote its number into `file` is gone.
async fn gone(file: &Path) -> bool {
    let pid = std::fs::read_to_string(file).unwrap();
    let status = format!("/proc/{}/status", pid.trim());
    let since = Instant::now();
    while since.elapsed() < Duration::from_mins(1) {
        // A zombie that its new parent has not reaped yet is as good as gone.
        match std::fs::read_to_string(&status) {
            Ok(text) if !text.contains("State:\tZ") => tokio::time::sleep(Duration::from_millis(10)).await,
            _ => return true,
        }
    }
    false
}

async fn written(file: &Path) {
    while std::fs::read_to_string(file).map_or(true, |text| text.is_empty()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn passes_input_output_complaint_and_exit_code() {
    let mut invocation = shell("cat; echo oops >&2; exit 3");
    invocation.input = vec![b'x'; 1 << 20];
    let (finished, output) = run(invocation, 1 << 20).await.unwrap();
    assert_eq!((finished.status.code(), output.len()), (Some(3), 1 << 20));
    assert_eq!(finished.complaint, b"oops\n");
}

#[tokio::test]
async fn input_that_nobody_reads_is_no_error() {
    let mut invocation = shell("exit 0");
    invocation.input = vec![b'x'; 1 << 20];
    assert!(run(invocation, 0).await.unwrap().0.status.success());
}

#[tokio::test]
async fn inherits_nothing() {
    let (_, output) = run(shell("env | grep -c -v -e ^PATH= -e ^PWD= || true"), 100).await.unwrap();
    assert_eq!(output, b"0\n");
}

#[tokio::test]
async fn too_much_output_ends_the_run() {
    assert!(matches!(run(shell("yes"), 1000).await, Err(Failure::TooMuchOutput)));
}

#[tokio::test]
async fn keeps_the_end_of_a_long_complaint() {
    let script = "i=0; while [ $i -lt 3000 ]; do echo line$i >&2; i=$((i+1)); done; echo last >&2";
    let complaint = run(shell(script), 0).await.unwrap().0.complaint;
    assert!(complaint.ends_with(b"last\n") && complaint.len() == super::MAX_COMPLAINT);
}

#[tokio::test]
async fn a_missing_program_is_an_error() {
    let mut invocation = shell("");
    invocation.program = "/no/such/program".into();
    assert!(matches!(run(invocation, 0).await, Err(Failure::Io(_))));
}

#[tokio::test]
async fn the_time_limit_ends_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    // The grandchild ignores the polite signal and must be killed.
    let script = format!("sh -c 'trap : TERM; echo $$ > {}; while :; do sleep 0.1; done'; :", pid.display());
    let mut invocation = shell(&script);
    // enough for two shells to start, also on a machine that is busy
    invocation.limit = Duration::from_secs(2);
    assert!(matches!(run(invocation, 0).await, Err(Failure::Timeout)));
    assert!(gone(&pid).await, "the grandchild lives on");
}

#[tokio::test]
async fn dropping_the_run_kills_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let script = format!("sh -c 'echo $$ > {}; exec sleep 100'; :", pid.display());
    let call = tokio::spawn(run(shell(&script), 0));
    written(&pid).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert!(gone(&pid).await, "the grandchild lives on");
}

#[tokio::test]
async fn a_dropped_run_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let mut call = Box::pin(run(shell(&format!("echo $$ > {}; exec sleep 100", pid.display())), 0));
    tokio::select! {
        result = &mut call => panic!("{result:?}"),
        () = written(&pid) => {}
    }
    drop(call);
    let status = format!("/proc/{}/status", std::fs::read_to_string(&pid).unwrap().trim());
    let state = std::fs::read_to_string(status);
    assert!(state.as_ref().map_or(true, |text| text.contains("State:\tZ")), "it lives on: {state:?}");
}
