use super::*;

const CONNECTION: &str = r#"oslo_db.exception.DBConnectionError: (pymysql.err.OperationalError) (2003, "Can't connect to MySQL server on '127.0.0.1' ([Errno 111] Connection refused)")"#;

/// Keystone without a database, shortened in the middle.
fn keystone() -> String {
    format!(
        r#"/opt/openstack/lib/python3.13/site-packages/oslo_service/backend/_eventlet/loopingcall.py:19: EventletDeprecationWarning: 
Eventlet is deprecated. It is currently being maintained in bugfix mode, and
we strongly recommend against using it for new projects.

If you are already using Eventlet, we recommend migrating to a different
framework.  For more detail see
https://eventlet.readthedocs.io/en/latest/asyncio/migration.html

  from eventlet import event
2026-11-28 02:52:08.640 1 WARNING oslo_db.sqlalchemy.engines [-] SQL connection failed. 2 attempts left.: {CONNECTION}
2026-11-28 02:52:18.647 1 WARNING oslo_db.sqlalchemy.engines [-] SQL connection failed. 1 attempts left.: {CONNECTION}
2026-11-28 02:52:28.651 1 CRITICAL keystone [-] Unhandled error: {CONNECTION}
(Background on this error at: https://sqlalche.me/e/20/e3q8)
2026-11-28 02:52:28.651 1 ERROR keystone Traceback (most recent call last):
2026-11-28 02:52:28.651 1 ERROR keystone   File "/opt/openstack/lib/python3.13/site-packages/pymysql/connections.py", line 681, in connect
2026-11-28 02:52:28.651 1 ERROR keystone     sock = socket.create_connection(
2026-11-28 02:52:28.651 1 ERROR keystone         (self.host, self.port), self.connect_timeout, **kwargs
2026-11-28 02:52:28.651 1 ERROR keystone     ~~~~~~~~~~~~^^^^
2026-11-28 02:52:28.651 1 ERROR keystone ConnectionRefusedError: [Errno 111] Connection refused
2026-11-28 02:52:28.651 1 ERROR keystone 
2026-11-28 02:52:28.651 1 ERROR keystone During handling of the above exception, another exception occurred:
2026-11-28 02:52:28.651 1 ERROR keystone 
2026-11-28 02:52:28.651 1 ERROR keystone Traceback (most recent call last):
2026-11-28 02:52:28.651 1 ERROR keystone   File "/opt/openstack/lib/python3.13/site-packages/sqlalchemy/engine/base.py", line 144, in __init__
2026-11-28 02:52:28.651 1 ERROR keystone     raise exc
2026-11-28 02:52:28.651 1 ERROR keystone {CONNECTION}
2026-11-28 02:52:28.651 1 ERROR keystone (Background on this error at: https://sqlalche.me/e/20/e3q8)
2026-11-28 02:52:28.651 1 ERROR keystone 
"#
    )
}

#[test]
fn of_a_traceback_the_exceptions_are_kept_each_once() {
    let lines = meaningful(&keystone());
    assert_eq!(lines, ["ConnectionRefusedError: [Errno 111] Connection refused", CONNECTION]);
    assert_eq!(Cause::of_log(&lines), Some(Cause::DatabaseUnreachable));
}

/// atmosphere 1452, 151: a db-sync that tries again and again says so in warnings only.
#[test]
fn what_is_tried_in_vain_is_told_once_and_without_time_and_level() {
    let hanging: Vec<_> = keystone().lines().take(11).map(str::to_owned).collect();
    let lines = meaningful(&hanging.join("\n"));
    assert_eq!(lines, [format!("SQL connection failed. 1 attempts left.: {CONNECTION}")]);
    assert_eq!(Cause::of_log(&lines), Some(Cause::DatabaseUnreachable));
}

#[test]
fn what_went_wrong_first_is_not_lost_behind_what_followed() {
    let lines = meaningful(
        "2026-11-28  2:57:56 0 [Warning] Could not increase number of max_open_files to more than 20000 (request: 32184)
2026-11-28  2:57:56 0 [Note] InnoDB: Initializing buffer pool
2026-11-28  2:57:56 0 [ERROR] InnoDB: preallocating 12582912 bytes for file ./ibdata1 failed with error 28
2026-11-28  2:57:56 0 [ERROR] InnoDB: Could not set the file size of './ibdata1'. Probably out of disk space
2026-11-28  2:57:56 0 [ERROR] InnoDB: Database creation was aborted with error Generic error. You may need to delete the ibdata1 file before trying to start up again.
2026-11-28  2:57:56 0 [ERROR] Plugin 'InnoDB' registration as a STORAGE ENGINE failed.
2026-11-28  2:57:56 0 [ERROR] Unknown/unsupported storage engine: InnoDB
2026-11-28  2:57:56 0 [ERROR] Aborting
",
    );
    assert_eq!(
        lines,
        [
            "InnoDB: preallocating 12582912 bytes for file ./ibdata1 failed with error 28",
            "InnoDB: Could not set the file size of './ibdata1'. Probably out of disk space",
            "Plugin 'InnoDB' registration as a STORAGE ENGINE failed.",
            "Unknown/unsupported storage engine: InnoDB",
        ]
    );
    assert_eq!(Cause::of_log(&lines), Some(Cause::VolumeFull));
}

#[test]
fn uwsgi_without_its_application() {
    let lines = meaningful(
        "*** WARNING: you are running uWSGI as root !!! (use the --uid flag) *** 
python threads support enabled
your mercy for graceful operations on workers is 60 seconds
*** Operational MODE: single process ***
Traceback (most recent call last):
  File \"/tmp/app.py\", line 1, in <module>
    import nosuch
ModuleNotFoundError: No module named 'nosuch'
unable to load app 0 (mountpoint='') (callable not found or import error)
*** no app loaded. GAME OVER ***
",
    );
    assert_eq!(
        lines,
        [
            "ModuleNotFoundError: No module named 'nosuch'",
            "unable to load app 0 (mountpoint='') (callable not found or import error)"
        ]
    );
    assert_eq!(Cause::of_log(&lines), Some(Cause::ProgramMissing));
}

#[test]
fn what_is_waited_for_is_kept() {
    let ours = "waiting for Service openstack/mariadb (no ready endpoint)\n";
    assert_eq!(meaningful(ours), ["waiting for Service openstack/mariadb (no ready endpoint)"]);
    let others = "Entrypoint INFO: 2026/11/28 11:52:05 entrypoint.go:65: Job/x is there
Entrypoint WARNING: 2026/11/28 11:52:07 entrypoint.go:72: Resolving dependency Service keystone-api in namespace openstack failed: Service keystone-api has no endpoints .
Entrypoint WARNING: 2026/11/28 11:52:09 entrypoint.go:72: Resolving dependency Service keystone-api in namespace openstack failed: Service keystone-api has no endpoints .
";
    let said = "Resolving dependency Service keystone-api in namespace openstack failed: Service keystone-api has no endpoints .";
    assert_eq!(meaningful(others).last().unwrap(), said);
    assert_eq!(Cause::of_log(&meaningful(others)), Some(Cause::DependencyMissing));
}

#[test]
fn answered_requests_are_no_news() {
    let text = "10.0.0.1 - - [28/Nov/2026:02:00:00 +0000] \"GET /healthcheck HTTP/1.1\" 200 2
[pid: 12|app: 0|req: 1/1] 10.0.0.1 () {30 vars in 400 bytes} [Sat Nov 28 02:00:00 2026] GET /v3 => generated 300 bytes in 4 msecs (HTTP/1.1 200) 5 headers
";
    assert_eq!(meaningful(text), Vec::<String>::new());
}

#[test]
fn without_anything_better_the_last_lines_are_shown_without_colours_and_times() {
    let text = "a\nb\n\x1b[31mc\x1b[0m\n2026-01-01T00:00:00.123Z d\n10%\r99%\r100%\n";
    assert_eq!(meaningful(text), ["b", "c", "d", "100%"]);
    assert_eq!(meaningful(""), Vec::<String>::new());
}

#[test]
fn passwords_in_urls_are_blackened() {
    let text =
        "ERROR x: mysql+pymysql://keystone:s3cr@t/:\"@mariadb:3306/keystone and rabbit://a:b@h1:5672,c:d@h2:5672/";
    assert_eq!(
        blackened(text),
        "ERROR x: mysql+pymysql://keystone:***@mariadb:3306/keystone and rabbit://a:***@h2:5672/"
    );
    assert_eq!(blackened("redis://:pw@host"), "redis://:***@host");
    assert_eq!(blackened("http://keystone:5000/v3"), "http://keystone:5000/v3");
    assert_eq!(meaningful("ERROR bad URL 'mysql://k:hunter2@db/k'"), ["ERROR bad URL 'mysql://k:***@db/k'"]);
}

#[test]
fn what_is_too_long_is_cut_between_words() {
    let secret = "s".repeat(30);
    let line = format!("{} {secret}", "word ".repeat(30).trim_end());
    for characters in 0..200 {
        let short = cut(&line, characters);
        assert!(short.chars().count() <= characters.max(2), "{characters}: {short}");
        assert!(short.contains(&secret) || !short.contains("ss"), "half a secret: {short}");
    }
    let lines: Vec<_> = (0..4).map(|i| format!("{i} {}", "wörd ".repeat(60))).collect();
    let short = shortened(&lines);
    assert!(short.iter().map(|l| l.chars().count()).sum::<usize>() <= CHARACTERS);
    assert!(short.last().unwrap().starts_with("3 wörd"));
}
