//! Certificates for tests: an authority, and what it signs. The tests of the engines use this file
//! too.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};

/// Signs certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate, in PEM.
    pub(crate) certificate: String,
}

/// A certificate and its key, in PEM.
pub(crate) struct Papers {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// When a certificate is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Validity {
    Now,
    Past,
    Future,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = pem("CERTIFICATE", params.self_signed(&key).unwrap().der());
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// Signs a certificate for hosts, or for a user of this name.
    pub(crate) fn sign(&self, name: &str, hosts: &[&str]) -> Papers {
        self.sign_for(Validity::Now, name, hosts)
    }

    pub(crate) fn sign_for(&self, validity: Validity, name: &str, hosts: &[&str]) -> Papers {
        let key = KeyPair::generate().unwrap();
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let years = match validity {
            Validity::Now => (2000, 3000),
            Validity::Past => (2000, 2001),
            Validity::Future => (2900, 3000),
        };
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let certificate = pem("CERTIFICATE", certificate.der());
        Papers { certificate, key: pem("PRIVATE KEY", &key.serialize_der()) }
    }
}

fn pem(label: &str, bytes: &[u8]) -> String {
    let text = base64(bytes);
    let lines = text.as_bytes().chunks(64).map(|line| str::from_utf8(line).unwrap());
    let lines: Vec<&str> = lines.collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = (0..3)
            .fold(0, |number, at| number << 8 | usize::from(three.get(at).copied().unwrap_or(0)));
        for at in 0..=three.len() {
            text.push(char::from(DIGITS[number >> (18 - 6 * at) & 63]));
        }
        text.extend((three.len()..3).map(|_| '='));
    }
    text
}
