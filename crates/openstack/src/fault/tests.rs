use rstest::rstest;

use super::*;

fn read(status: u16, body: &str) -> Fault {
    Fault::read(StatusCode::from_u16(status).unwrap(), body.as_bytes(), &[])
}

#[rstest]
#[case::keystone(
    404,
    r#"{"error":{"code":404,"message":"Could not find project: x.","title":"Not Found"}}"#,
    "Could not find project: x."
)]
#[case::nova(
    400,
    r#"{"badRequest":{"code":400,"message":"Invalid input for field/attribute name."}}"#,
    "Invalid input for field/attribute name."
)]
#[case::neutron(
    404,
    r#"{"NeutronError":{"type":"NetworkNotFound","message":"Network x could not be found.","detail":""}}"#,
    "Network x could not be found."
)]
#[case::neutron_bare(400, r#"{"NeutronError":"Malformed request body"}"#, "Malformed request body")]
#[case::placement(404, r#"{"errors":[{"status":404,"title":"Not Found","detail":"No resource provider with uuid x found","request_id":"req-1"}]}"#, "No resource provider with uuid x found")]
#[case::octavia(
    404,
    r#"{"faultcode":"Client","faultstring":"Load Balancer x not found.","debuginfo":null}"#,
    "Load Balancer x not found."
)]
#[case::webob_json(
    409,
    r#"{"message":"Image ID x already exists!<br /><br />\n\n\n","code":"409 Conflict","title":"Conflict"}"#,
    "Image ID x already exists!"
)]
#[case::glance_page(
    404,
    "<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n  <h1>404 Not Found</h1>\n  No image found with ID &quot;x&quot;<br /><br />\n\n\n </body>\n</html>",
    "No image found with ID \"x\""
)]
#[case::plain(
    403,
    "403 Forbidden\n\nYou are not authorized to complete this action.\n\n   ",
    "You are not authorized to complete this action."
)]
#[case::proxy(
    502,
    "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n",
    "nginx"
)]
#[case::apache(
    503,
    "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">\n<html><head>\n<title>503 Service Unavailable</title>\n</head><body>\n<h1>Service Unavailable</h1>\n<p>The server is busy.</p></body></html>",
    "Service Unavailable The server is busy."
)]
#[case::json_without_words(500, r#"{"code":500}"#, "")]
#[case::json_list(500, "[1, 2]", "")]
#[case::json_string(500, r#""out of order""#, "out of order")]
#[case::empty(500, "", "")]
#[case::control_characters(400, "a\u{1b}[31mb\tc\u{0}", "a[31mb c")]
fn the_services_own_words_are_found(#[case] status: u16, #[case] body: &str, #[case] message: &str) {
    assert_eq!(read(status, body).message, message);
}

#[rstest]
#[case::unauthorized(401, "", ErrorKind::Unauthorized)]
#[case::nova_microversion(
    406,
    r#"{"computeFault":{"code":406,"message":"Version 2.61 is not supported by the API."}}"#,
    ErrorKind::Protocol
)]
#[case::forbidden(
    403,
    r#"{"error":{"message":"You are not authorized to perform the requested action: identity:create_project."}}"#,
    ErrorKind::Forbidden
)]
#[case::a_policy_about_quotas(
    403,
    r#"{"forbidden":{"message":"Policy doesn't allow os_compute_api:os-quota-sets:update to be performed."}}"#,
    ErrorKind::Forbidden
)]
#[case::nova_quota(
    403,
    r#"{"forbidden":{"message":"Quota exceeded for cores: Requested 8, but already used 4 of 10 cores"}}"#,
    ErrorKind::Quota
)]
#[case::octavia_quota(403, r#"{"faultstring":"Quota has been met for resources: Load Balancer"}"#, ErrorKind::Quota)]
#[case::keystone_limit(403, r#"{"error":{"message":"Unable to create additional application credentials. The maximum of 5 has already been exceeded for user."}}"#, ErrorKind::Quota)]
#[case::neutron_quota(
    409,
    r#"{"NeutronError":{"type":"OverQuota","message":"Quota exceeded for resources: ['network'].","detail":""}}"#,
    ErrorKind::Quota
)]
#[case::neutron_in_use(
    409,
    r#"{"NeutronError":{"type":"SubnetInUse","message":"Unable to complete operation on subnet x","detail":""}}"#,
    ErrorKind::Conflict
)]
#[case::cinder_quota(
    413,
    r#"{"overLimit":{"message":"VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded","code":413}}"#,
    ErrorKind::Quota
)]
#[case::glance_quota(
    413,
    "<html><head><title>413 Request Entity Too Large</title></head><body>too large</body></html>",
    ErrorKind::Quota
)]
#[case::neutron_no_way_there(
    404,
    r#"{"NeutronError":{"type":"ExternalGatewayForFloatingIPNotFound","message":"External network x is not reachable","detail":""}}"#,
    ErrorKind::NoRoute
)]
#[case::not_found(404, "", ErrorKind::NotFound)]
#[case::gone(410, "", ErrorKind::NotFound)]
#[case::conflict(409, "", ErrorKind::Conflict)]
#[case::changed_meanwhile(
    412,
    r#"{"NeutronError":{"type":"RevisionNumberConstraintFailed","message":"Constrained to 1, but current revision is 2","detail":""}}"#,
    ErrorKind::Outdated
)]
#[case::too_many(429, "", ErrorKind::RateLimited)]
#[case::bad_request(400, "", ErrorKind::BadRequest)]
#[case::unsupported_media(415, "", ErrorKind::BadRequest)]
#[case::request_timeout(408, "", ErrorKind::Unavailable)]
#[case::broken(500, "", ErrorKind::Unavailable)]
#[case::down(503, "", ErrorKind::Unavailable)]
#[case::redirect(302, "", ErrorKind::Protocol)]
fn a_fault_is_sorted(#[case] status: u16, #[case] body: &str, #[case] kind: ErrorKind) {
    assert_eq!(read(status, body).kind, kind);
}

#[test]
fn a_long_message_is_cut_between_characters() {
    let message = read(400, &"ä".repeat(2000)).message;
    assert_eq!(message.chars().count(), LONGEST_MESSAGE + 1);
    assert!(message.ends_with('…'));
}

#[test]
fn a_secret_that_is_echoed_is_not_repeated() {
    let body = r#"{"error":{"message":"Invalid input for field 'password': 'hunter2' is too short"}}"#;
    let fault = Fault::read(StatusCode::BAD_REQUEST, body.as_bytes(), &["hunter2".to_owned().into()]);
    assert_eq!(fault.message, "Invalid input for field 'password': '***' is too short");
}

/// An answer of which we read the beginning only, and one that shortens what it quotes.
#[test]
fn of_a_secret_that_is_cut_off_nothing_is_told() {
    let secret = "0123456789abcdef".repeat(8);
    for part in [&secret[..100], &secret[..RECOGNIZED]] {
        let body = format!(r#"{{"badRequest": {{"code": 400, "message": "Value: {secret}. '{part}"#);
        let fault = Fault::read(StatusCode::BAD_REQUEST, body.as_bytes(), &[secret.clone().into()]);
        assert_eq!(fault.message, r#"{"badRequest": {"code": 400, "message": "Value: ***. '***"#);
    }
}
