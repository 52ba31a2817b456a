use rstest::rstest;

use super::*;

#[test]
fn every_sign_is_an_expression() {
    assert_eq!(signs::COMPILED.len(), signs::SIGNS.len());
}

/// What the programs themselves print.
#[rstest]
#[case(
    "node worker2 has no /dev/kvm: its processors can't virtualise, or it is a VM that may not. Set conf.nova.libvirt.virt_type to qemu (virtType of the Nova object), or take the node's label away",
    Cause::NodeUnfit
)]
#[case(
    "node worker2 has no network card eth7, which conf.auto_bridge_add.br-ex names (externalInterfaces.br-ex of the OVN object): correct that, or take the node's label away",
    Cause::NodeUnfit
)]
#[case(
    "the network card eth7 of node worker2, which network.interface.tunnel names (tunnelInterface of the OVN object), has no address: give it one, or name another card",
    Cause::NodeUnfit
)]
#[case(
    "the kernel of node worker2 has no module openvswitch: load it, or set conf.ovn_bridge_datapath_type to netdev (datapath of the OVN object to userspace)",
    Cause::NodeUnfit
)]
#[case("modprobe: FATAL: Module openvswitch not found in directory /lib/modules/6.12.0", Cause::NodeUnfit)]
#[case(
    r#"oslo_db.exception.DBConnectionError: (pymysql.err.OperationalError) (2003, "Can't connect to MySQL server on '127.0.0.1' ([Errno 111] Connection refused)")"#,
    Cause::DatabaseUnreachable
)]
#[case(
    r#"SQL connection failed. 1 attempts left.: oslo_db.exception.DBConnectionError: (pymysql.err.OperationalError) (2003, "Can't connect to MySQL server on 'no-such-host' ([Errno -3] Temporary failure in name resolution)")"#,
    Cause::DatabaseUnreachable
)]
#[case("ERROR 2002 (HY000): Can't connect to server on '127.91.1.1' (115)", Cause::DatabaseUnreachable)]
#[case(
    "ERROR 2002 (HY000): Can't connect to local server through socket '/run/mysqld/mysqld.sock' (2)",
    Cause::DatabaseUnreachable
)]
#[case("ERROR 2005 (HY000): Unknown server host 'nosuchhost' (-3)", Cause::DatabaseUnreachable)]
#[case(
    r"(pymysql.err.OperationalError) (2013, 'Lost connection to MySQL server during query')",
    Cause::DatabaseUnreachable
)]
#[case(
    r#"sqlalchemy.exc.OperationalError: (pymysql.err.OperationalError) (1045, "Access denied for user 'keystone'@'localhost' (using password: YES)")"#,
    Cause::WrongPassword
)]
#[case("ERROR 1045 (28000): Access denied for user 'keystone'@'localhost' (using password: YES)", Cause::WrongPassword)]
#[case(
    r#"(pymysql.err.OperationalError) (1044, "Access denied for user 'keystone'@'%' to database 'other'")"#,
    Cause::DatabaseMissing
)]
#[case(r#"(pymysql.err.OperationalError) (1049, "Unknown database 'keystone'")"#, Cause::DatabaseMissing)]
#[case(r#"(pymysql.err.ProgrammingError) (1146, "Table 'keystone.project' doesn't exist")"#, Cause::DatabaseMissing)]
#[case(
    "keystoneauth1.exceptions.http.Unauthorized: The request you have made requires authentication. (HTTP 401) (Request-ID: req-1)",
    Cause::WrongPassword
)]
#[case(
    "keystoneauth1.exceptions.connection.ConnectFailure: Unable to establish connection to http://127.91.1.1:33971/v3/auth/tokens: HTTPConnectionPool(host='127.91.1.1', port=33971): Max retries exceeded with url: /v3/auth/tokens",
    Cause::ServiceUnreachable
)]
#[case(
    r#"keystoneauth1.exceptions.connection.ConnectFailure: Unable to establish connection to http://keystone-api.nowhere:5000/v3/auth/tokens: HTTPConnectionPool(host='keystone-api.nowhere', port=5000): Max retries exceeded with url: /v3/auth/tokens (Caused by NameResolutionError("…"))"#,
    Cause::NameResolution
)]
#[case(
    "oslo_config.cfg.ConfigFileValueError: Value for option max_retries from LocationInfo(location=<Locations.user: (4, True)>, detail='/etc/keystone/keystone.conf') is not valid: invalid literal for int() with base 10: 'banana'",
    Cause::BadOption
)]
#[case(
    "oslo_config.cfg.ConfigFileParseError: Failed to parse /etc/keystone/keystone.conf: at /etc/keystone/keystone.conf:1, Invalid section (must end with ]): '[DEFAULT'",
    Cause::BadOption
)]
#[case("oslo_config.cfg.NoSuchOptError: no such option max_retrys in group [database]", Cause::BadOption)]
#[case(
    "oslo_config.cfg.ConfigFilesNotFoundError: Failed to find some config files: /etc/glance/glance-api.conf",
    Cause::MissingConfiguration
)]
#[case("keystone-manage: error: argument command: invalid choice: 'no_such_command'", Cause::BadOption)]
#[case("mariadbd: unknown variable 'no-such-option=3'", Cause::BadOption)]
#[case("Can't start server: Bind on TCP/IP port. Got error: 98: Address already in use", Cause::PortInUse)]
#[case("Do you already have another server running on port: 33991 ?", Cause::PortInUse)]
#[case("bind(): Address already in use [core/socket.c line 769]", Cause::PortInUse)]
#[case("probably another instance of uWSGI is running on the same address (127.91.1.1:33970).", Cause::PortInUse)]
#[case("failed to listen on one of interface(s) 127.91.1.1: Address already in use", Cause::PortInUse)]
#[case(
    r#"mariadbd: Error writing file './ddl_recovery.log' (Errcode: 28 "No space left on device")"#,
    Cause::VolumeFull
)]
#[case("InnoDB: preallocating 12582912 bytes for file ./ibdata1 failed with error 28", Cause::VolumeFull)]
#[case("InnoDB: Could not set the file size of './ibdata1'. Probably out of disk space", Cause::VolumeFull)]
#[case("OSError: [Errno 28] No space left on device: '/var/lib/glance/images/x'", Cause::VolumeFull)]
#[case(
    r#"mariadbd: Can't create/write to file './ddl_recovery.log' (Errcode: 13 "Permission denied")"#,
    Cause::PermissionDenied
)]
#[case("PermissionError: [Errno 13] Permission denied: '/etc/keystone/fernet-keys/0'", Cause::PermissionDenied)]
#[case("InnoDB: Unable to lock ./ibdata1 error: 11", Cause::DataInUse)]
#[case("InnoDB: Database page corruption on disk or a failed file read", Cause::DataDamaged)]
#[case("ModuleNotFoundError: No module named 'nosuch'", Cause::ProgramMissing)]
#[case("unable to load app 0 (mountpoint='') (callable not found or import error)", Cause::ProgramMissing)]
#[case("socket.gaierror: [Errno -2] Name or service not known", Cause::NameResolution)]
#[case(
    "waiting for Service openstack/mariadb (no ready endpoint); Job openstack/keystone-db-sync (not complete)",
    Cause::DependencyMissing
)]
#[case(
    "Resolving dependency Service keystone-api in namespace openstack failed: Service keystone-api has no endpoints .",
    Cause::DependencyMissing
)]
fn lines_point_to_causes(#[case] line: &str, #[case] cause: Cause) {
    assert_eq!(Cause::of_line(line), Some(cause));
}

#[rstest]
#[case("2 rows in set")]
#[case("KeyError: 'foo'")]
#[case("Starting MariaDB 11.8.9 as process 229")]
fn what_says_nothing_is_not_guessed_at(#[case] line: &str) {
    assert_eq!(Cause::of_line(line), None);
}

#[rstest]
#[case(
    "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }.",
    Placement::Resources
)]
#[case("0/1 nodes are available: 1 Too many pods.", Placement::Resources)]
#[case(
    "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate",
    Placement::Selector
)]
#[case(
    "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }.",
    Placement::Taint
)]
#[case("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.", Placement::Claim)]
#[case("0/1 nodes are available: persistentvolumeclaim \"mariadb-data\" not found.", Placement::Claim)]
#[case("0/2 nodes are available: 2 node(s) had volume node affinity conflict.", Placement::Claim)]
#[case("0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.", Placement::Spread)]
#[case("no nodes available to schedule pods", Placement::Other)]
fn the_scheduler_says_what_is_missing(#[case] message: &str, #[case] placement: Placement) {
    assert_eq!(Cause::of_scheduling(message), Cause::Unschedulable(placement));
}

#[rstest]
#[case("ErrImagePull", "rpc error: code = NotFound", Some(Cause::ImagePull))]
#[case("ImagePullBackOff", "Back-off pulling image \"x\"", Some(Cause::ImagePull))]
#[case("ErrImageNeverPull", "Container image \"x\" is not present with pull policy of Never", Some(Cause::ImagePull))]
#[case("InvalidImageName", "couldn't parse image name", Some(Cause::ImagePull))]
#[case("CreateContainerConfigError", "secret \"keystone-etc\" not found", Some(Cause::MissingConfiguration))]
#[case(
    "RunContainerError",
    "failed to create containerd task: exec: \"uwsgi\": executable file not found in $PATH: unknown",
    Some(Cause::ProgramMissing)
)]
#[case("CreateContainerError", "context deadline exceeded", None)]
fn reasons_of_containers_point_to_causes(#[case] reason: &str, #[case] message: &str, #[case] cause: Option<Cause>) {
    assert_eq!(Cause::of_waiting(reason, message), cause);
}
