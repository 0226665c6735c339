//! Which URLs may be requested.
//!
//! A host has to be on the operator's list, and its address has to be public. An address in the URL is checked here.
//! The address of a name is checked by [`PublicResolver`] at the moment of connecting, so a name whose address
//! changes between check and use gains nothing. An origin on the list is trusted at any address.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Origin, Url};

use crate::builtin::tool::{BuiltinFailure, QuotedName, failure};
pub(super) use crate::public_address::is_public;

/// An invalid entry of the host list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{entry}` in `[builtin.http] hosts` is no host; write `api.example.com`, `*.example.com`, `*`, or an origin \
     such as `http://127.0.0.1:8080`"
)]
pub struct InvalidHostEntry {
    /// The entry as configured.
    pub entry: String,
}

/// The operator's list of hosts.
pub(super) struct HostAllowlist(Vec<AllowlistEntry>);

enum AllowlistEntry {
    Every,
    Host(Host),
    Below(String),
    Origin(Origin),
}

/// The addresses at which a URL may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressReach {
    /// Public addresses only.
    Public,
    /// Any address.
    Anywhere,
}

impl HostAllowlist {
    pub(super) fn parse(entries: &[String]) -> Result<HostAllowlist, InvalidHostEntry> {
        let read = |entry: &String| {
            AllowlistEntry::parse(entry.trim()).ok_or_else(|| InvalidHostEntry { entry: entry.clone() })
        };
        entries.iter().map(read).collect::<Result<_, _>>().map(HostAllowlist)
    }

    /// Whether `url` may be requested, as far as that is known without resolving its host.
    pub(super) fn check(&self, url: &Url) -> Result<AddressReach, BuiltinFailure> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(failure!(
                "URLs with the scheme `{}` are not asked; use `http` or `https`",
                url.scheme()
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(failure!(
                "the URL carries a user name or password; send an `Authorization` header instead"
            ));
        }
        let host = url.host().ok_or_else(|| failure!("the URL names no host"))?.to_owned();
        if self
            .0
            .iter()
            .any(|entry| matches!(entry, AllowlistEntry::Origin(origin) if *origin == url.origin()))
        {
            return Ok(AddressReach::Anywhere);
        }
        let host = without_root_dot(host);
        let shown = host.to_string();
        if !self.0.iter().any(|entry| entry.covers(&host)) {
            return Err(failure!(
                "host {} is not allowed; the operator can add it to `[builtin.http] hosts`",
                QuotedName(&shown)
            ));
        }
        if let Some(port) = url.port() {
            return Err(failure!(
                "port {port} of host {} is not allowed; the operator can add the origin `{}` to \
                 `[builtin.http] hosts`",
                QuotedName(&shown),
                url.origin().ascii_serialization()
            ));
        }
        match address(&host) {
            Some(address) if !is_public(address) => {
                Err(BuiltinFailure(NotPublicAddress { host: shown, address }.to_string()))
            }
            _ => Ok(AddressReach::Public),
        }
    }
}

impl AllowlistEntry {
    fn parse(text: &str) -> Option<AllowlistEntry> {
        if text.contains("://") {
            return origin(text).map(AllowlistEntry::Origin);
        }
        match text.strip_prefix("*.") {
            _ if text == "*" => Some(AllowlistEntry::Every),
            Some(parent) => match host(parent)? {
                Host::Domain(parent) => Some(AllowlistEntry::Below(parent)),
                Host::Ipv4(_) | Host::Ipv6(_) => None,
            },
            None => host(text).map(AllowlistEntry::Host),
        }
    }

    fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (AllowlistEntry::Every, _) => true,
            (AllowlistEntry::Host(allowed), host) => allowed == host,
            (AllowlistEntry::Below(parent), Host::Domain(name)) => {
                name.strip_suffix(parent.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (AllowlistEntry::Below(_) | AllowlistEntry::Origin(_), _) => false,
        }
    }
}

fn origin(text: &str) -> Option<Origin> {
    let url = Url::parse(text).ok()?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    plain.then(|| url.origin())
}

fn host(text: &str) -> Option<Host> {
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some(Host::Ipv6(address));
    }
    let host = Host::parse(text).ok()?;
    let fits = match &host {
        Host::Domain(name) => !name.is_empty() && !name.contains('*'),
        Host::Ipv4(_) | Host::Ipv6(_) => true,
    };
    fits.then(|| without_root_dot(host))
}

/// `example.com.` is the same host as `example.com`.
fn without_root_dot(host: Host) -> Host {
    match host {
        Host::Domain(name) => Host::Domain(name.trim_end_matches('.').to_owned()),
        address => address,
    }
}

fn address(host: &Host) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(IpAddr::V4(*address)),
        Host::Ipv6(address) => Some(IpAddr::V6(*address)),
    }
}

/// A name that resolved to an address that is not public.
#[derive(Debug, thiserror::Error)]
#[error(
    "host `{host}` is at {address}, which is not a public address; the operator can add its origin to \
     `[builtin.http] hosts`"
)]
struct NotPublicAddress {
    host: String,
    address: IpAddr,
}

/// Resolves host names.
pub(super) type HostLookup =
    Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> + Send + Sync>;

/// Resolves through the system.
pub(super) fn system_lookup() -> HostLookup {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// Resolves a name to its public addresses only, for the connection that is about to be made.
pub(super) struct PublicResolver(pub(super) HostLookup);

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let lookup = (self.0)(host.clone());
        Box::pin(async move {
            let (public, others): (Vec<IpAddr>, Vec<IpAddr>) =
                lookup.await?.into_iter().partition(|a| is_public(*a));
            match others.first() {
                Some(&address) if public.is_empty() => Err(NotPublicAddress { host, address }.into()),
                _ => Ok(Box::new(public.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs),
            }
        })
    }
}
