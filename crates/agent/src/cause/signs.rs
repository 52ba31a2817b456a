//! What programs say, and what it means.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

use super::Cause;

/// Expressions by cause, without regard to case. The first that matches counts, so what is said in particular comes
/// before what is said in general: a database that refuses a connection is a database first.
pub(super) const SIGNS: &[(&str, Cause)] = &[
    // our own scripts on nodes, and what they try before they give up
    (
        r"^node \S+ has no (/dev/|network card )|^the kernel of node \S+ has no module |^modprobe: .*not found in directory",
        Cause::NodeUnfit,
    ),
    (r"^the network card \S+ of node \S+, .*has no address", Cause::NodeUnfit),
    (r"unknown database|access denied for user .* to database|table '.*' doesn't exist", Cause::DatabaseMissing),
    (
        r"access denied for user|\bHTTP 401\b|requires authentication|rejected authorization|ACCESS_REFUSED",
        Cause::WrongPassword,
    ),
    (r"authentication failed|invalid (user ?name or )?password|login (was )?refused", Cause::WrongPassword),
    (
        r"can't connect to (local |the )?(mysql |mariadb )?server|unknown (mysql |mariadb )?server host|DBConnectionError",
        Cause::DatabaseUnreachable,
    ),
    (r"lost connection to (mysql |mariadb )?server|server has gone away", Cause::DatabaseUnreachable),
    (r"ConfigFilesNotFoundError|failed to find some config files", Cause::MissingConfiguration),
    (r"No such file or directory: '[^']*\.(conf|ini|cnf|ya?ml|json)'", Cause::MissingConfiguration),
    (r"ConfigFileValueError|ConfigFileParseError|NoSuchOptError|NoSuchGroupError|RequiredOptError", Cause::BadOption),
    (
        r"unknown variable '|unknown option|unrecogni[sz]ed (arguments|option)|unrecognized option|invalid choice: ",
        Cause::BadOption,
    ),
    (r"no space left on device|\bErr(no|code):? 28\b|disk (is )?full|disk quota exceeded", Cause::VolumeFull),
    (r"out of disk space|failed with error 28\b", Cause::VolumeFull),
    (
        r"address already in use|\bErrno 98\b|another instance of uWSGI|already have another (\S+ )?server running on port",
        Cause::PortInUse,
    ),
    (r"cannot allocate memory|\bMemoryError\b|out of memory", Cause::OutOfMemory),
    (
        r"unable to lock \S*ibdata|already have another \S+ process using|could not get an exclusive lock",
        Cause::DataInUse,
    ),
    (r"corrupt(ed|ion)?\b", Cause::DataDamaged),
    (
        r"ModuleNotFoundError|\bNo module named\b|callable not found or import error|no python application found",
        Cause::ProgramMissing,
    ),
    (r"executable file not found|command not found|exec format error", Cause::ProgramMissing),
    (r"exec: .*no such file or directory", Cause::ProgramMissing),
    (
        r"name or service not known|failure in name resolution|no such host|could not resolve host|NameResolutionError",
        Cause::NameResolution,
    ),
    (r"certificate verify failed|CERTIFICATE_VERIFY_FAILED|certificate has expired|\bx509: ", Cause::Certificate),
    (
        r"connection refused|\bErrno 111\b|no route to host|connection timed out|network is unreachable",
        Cause::ServiceUnreachable,
    ),
    (r"unable to establish connection|connection reset by peer|ConnectFailure|\bHTTP 503\b", Cause::ServiceUnreachable),
    (r"^waiting for |^resolving dependency .* failed", Cause::DependencyMissing),
    (
        r"permission denied|\bErr(no|code):? 13\b|operation not permitted|\bHTTP 403\b|PermissionError",
        Cause::PermissionDenied,
    ),
];

/// Those of [`SIGNS`] that are expressions; a test holds that all are.
pub(super) static COMPILED: LazyLock<Vec<(Regex, Cause)>> = LazyLock::new(|| {
    let compile = |(sign, cause): &(&str, Cause)| {
        let regex = RegexBuilder::new(sign).case_insensitive(true).build().ok()?;
        Some((regex, *cause))
    };
    SIGNS.iter().filter_map(compile).collect()
});

/// The cause that the line points to.
pub(super) fn find(line: &str) -> Option<Cause> {
    COMPILED.iter().find(|(regex, _)| regex.is_match(line)).map(|(_, cause)| *cause)
}
