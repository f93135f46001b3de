//! The part of the configuration about encrypted connections.

use pinpriq_server::config::{DoorName, TlsClients, TlsOptions};

use super::{Unusable, listeners};
use crate::settings::{ClientCertificates, Listen, Settings};

/// Returns what the settings say about encrypted connections, if there are to be any. Refuses
/// settings without which others have no use.
pub(super) fn options(settings: &Settings) -> Result<Option<TlsOptions>, Unusable> {
    let or_off = |listen: &Option<Listen>| Some(listen.clone().unwrap_or(Listen::Off));
    let listeners = listeners([
        (DoorName::Pinpriq, or_off(&settings.pinpriqs)),
        (DoorName::Resp, or_off(&settings.resps)),
        (DoorName::Http, or_off(&settings.https)),
        (DoorName::Beanstalkd, or_off(&settings.beanstalkds)),
    ])?;
    if settings.tls_client.is_some() && settings.tls_client_ca.is_none() {
        return Err(Unusable::NoClientAuthority);
    }
    let required = settings.tls_client != Some(ClientCertificates::Optional);
    let authorities = settings.tls_client_ca.clone();
    let clients = authorities.map(|authorities| TlsClients { authorities, required });
    match (settings.tls_cert.clone(), settings.tls_key.clone()) {
        (Some(_), None) => Err(Unusable::NoCertificate { missing: "tls-key" }),
        (None, None) if listeners.is_empty() && clients.is_none() => Ok(None),
        (None, _) => Err(Unusable::NoCertificate { missing: "tls-cert" }),
        (Some(_), Some(_)) if listeners.is_empty() => Err(Unusable::NothingEncrypted),
        (Some(certificate), Some(key)) => {
            Ok(Some(TlsOptions { listeners, certificate, key, clients }))
        }
    }
}
