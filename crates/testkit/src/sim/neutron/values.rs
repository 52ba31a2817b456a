//! What values of addresses and ranges may be, in Neutron's words when they may not.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::convert::{Converted, plain};

/// What a check comes to: why a value can't be.
pub(super) type Check = Result<(), String>;

pub(super) fn address(value: &Value) -> Check {
    match parsed(value) {
        Some(_) => Ok(()),
        None => Err(format!("'{}' is not a valid IP address", plain(value))),
    }
}

pub(super) fn address_or_null(value: &Value) -> Check {
    or_null(value, address)
}

pub(super) fn ip_version(value: &Value) -> Check {
    if [Some(4), Some(6)].contains(&value.as_u64()) { Ok(()) } else { Err(format!("{value} is not in valid_values")) }
}

pub(super) fn ipv6_mode(value: &Value) -> Check {
    let known = ["dhcpv6-stateful", "dhcpv6-stateless", "slaac"];
    if value.as_str().is_some_and(|mode| known.contains(&mode)) {
        Ok(())
    } else {
        Err(format!("{} is not in valid_values", plain(value)))
    }
}

pub(super) fn nameservers(value: &Value) -> Check {
    each(value, "nameserver", |server| {
        address(server).map_err(|reason| format!("'{}' is not a valid nameserver. {reason}", plain(server)))
    })
}

pub(super) fn pools(value: &Value) -> Check {
    or_null(value, |value| {
        let all = value.as_array().ok_or_else(|| format!("Invalid data format for IP pool: '{}'", plain(value)))?;
        all.iter().try_for_each(|pool| {
            let [start, end] = members(pool, ["start", "end"])?;
            address(start).and_then(|()| address(end))
        })
    })
}

pub(super) fn routes(value: &Value) -> Check {
    each(value, "hostroute", |route| {
        let [destination, nexthop] = members(route, ["destination", "nexthop"])?;
        let is_a_range = range(destination).is_some_and(|range| range.trunc() == range);
        if !is_a_range {
            return Err(format!("'{}' is not a valid CIDR", plain(destination)));
        }
        address(nexthop)
    })
}

/// Every element of a list, of which none may be there twice.
fn each(value: &Value, noun: &str, check: impl Fn(&Value) -> Check) -> Check {
    or_null(value, |value| {
        let all = value.as_array().ok_or_else(|| format!("Invalid data format for {noun}: '{}'", plain(value)))?;
        all.iter().enumerate().try_for_each(|(index, one)| {
            check(one)?;
            if all[..index].contains(one) { Err(format!("Duplicate {noun} '{}'", plain(one))) } else { Ok(()) }
        })
    })
}

/// An object's members, of which it has these and no others.
fn members<'a>(value: &'a Value, names: [&str; 2]) -> Result<[&'a Value; 2], String> {
    let object = value.as_object().filter(|object| object.len() == names.len());
    let found = object.and_then(|object| Some([object.get(names[0])?, object.get(names[1])?]));
    found.ok_or_else(|| {
        format!("Validation of dictionary's keys failed. Expected keys: {names:?} Provided keys: {value}")
    })
}

pub(super) fn or_null(value: &Value, check: impl FnOnce(&Value) -> Check) -> Check {
    if value.is_null() { Ok(()) } else { check(value) }
}

/// An address.
pub(super) fn parsed(value: &Value) -> Option<IpAddr> {
    value.as_str()?.parse().ok()
}

/// A range, whose address need not be its first.
pub(super) fn range(value: &Value) -> Option<IpNet> {
    value.as_str()?.parse().ok()
}

pub(super) fn mac(value: &Value) -> Check {
    let octets: Vec<&str> = value.as_str().unwrap_or_default().split(':').collect();
    let is_octet = |octet: &&str| octet.len() == 2 && octet.chars().all(|digit| digit.is_ascii_hexdigit());
    if octets.len() == 6 && octets.iter().all(is_octet) && octets.iter().any(|octet| *octet != "00") {
        Ok(())
    } else {
        Err(format!("'{}' is not a valid MAC address", plain(value)))
    }
}

/// As Neutron writes it.
#[expect(clippy::unnecessary_wraps, reason = "it is one of the conversions")]
pub(super) fn lower_mac(value: &Value) -> Converted {
    Ok(value.as_str().map_or(Value::Null, |text| json!(text.to_ascii_lowercase().replace('-', ":"))))
}

pub(super) fn fixed_ips(value: &Value) -> Check {
    let malformed = |value: &Value| format!("Invalid data format for fixed IP: '{}'", plain(value));
    let all = value.as_array().ok_or_else(|| malformed(value))?;
    all.iter().enumerate().try_for_each(|(index, fixed)| {
        if !fixed.is_object() {
            return Err(malformed(fixed));
        }
        let Some(ip) = fixed.get("ip_address") else { return Ok(()) };
        if all[..index].iter().any(|other| other.get("ip_address") == Some(ip)) {
            return Err(format!("Duplicate IP address '{}'", plain(ip)));
        }
        address(ip)
    })
}

pub(super) fn vnic_type(value: &Value) -> Check {
    let known = [
        "normal",
        "direct",
        "direct-physical",
        "macvtap",
        "baremetal",
        "virtio-forwarder",
        "smart-nic",
        "vdpa",
        "accelerator-direct",
        "accelerator-direct-physical",
        "remote-managed",
    ];
    if value.as_str().is_some_and(|given| known.contains(&given)) {
        Ok(())
    } else {
        Err(format!("{} is not in valid_values", plain(value)))
    }
}
