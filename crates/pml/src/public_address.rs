//! Which addresses belong to the public internet, so that what a stranger names does not lead into a private network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address belongs to the public internet, by the registries of special addresses.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    // Azure's instance metadata service answers here, on an otherwise public address.
    const AZURE_METADATA: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        (0 | 10 | 127 | 224..=255, ..) => true,
        (100, 64..=127, _) | (169, 254, _) | (172, 16..=31, _) | (192, 168, _) | (198, 18 | 19, _) => true,
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 51, 100) | (203, 0, 113) => true,
        _ => address == AZURE_METADATA,
    };
    !special
}

/// Only 2000::/3 is allocated. Within it, addresses that embed an IPv4 address (6to4, Teredo) or that are reserved
/// are refused; mapped, compatible and NAT64 addresses lie outside.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x2002, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}
