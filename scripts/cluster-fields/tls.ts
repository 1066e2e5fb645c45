// Notes on TLS to hosts.

import type { MessageNotes } from './note.ts';
import { SECRET_DISCOVERY, TLS_SETTINGS, UPSTREAM_TLS, UPSTREAM_TLS_FILES } from './tests.ts';

const TLS = 'proxy.extensions.transport_sockets.tls.v3';
const BY_SYSTEM = 'what OpenSSL prefers';

export const TLS_NOTES: Readonly<Record<string, MessageNotes>> = {
  [`${TLS}.UpstreamTlsContext`]: {
    about:
      'How connections to hosts are secured. Without a validation context any server will do. `connect_timeout` bounds the ' +
      'handshake, too. What fails is counted in `cluster.<name>.ssl.*` and told in answers and logs.',
    test: UPSTREAM_TLS,
    fields: {
      common_tls_context: ['Certificates, whom to believe, versions and protocols.', 'any server, TLS 1.2'],
      sni: ['What servers are asked for; they may choose their certificate by it.', 'nothing'],
      allow_renegotiation: ['Of TLS 1.2 and older, where servers ask for it.', '`false`', TLS_SETTINGS],
      max_session_keys: ['Sessions kept for each address and name, to go on with; 0 for none.', '`1`'],
      enforce_rsa_key_usage: ['Nothing: OpenSSL goes by the usage that a certificate names.', '`false`'],
      auto_host_sni: ["The host's name takes the place of `sni`, where its endpoint has one.", '`false`'],
      auto_sni_san_validation: ['The certificate has to be for the name that the server is asked for.', '`false`'],
    },
  },
  [`${TLS}.CommonTlsContext`]: {
    test: UPSTREAM_TLS,
    fields: {
      tls_params: ['Versions, ciphers and the like.', 'those below'],
      tls_certificates: ['What this proxy shows to servers that ask: one.', 'none'],
      tls_certificate_sds_secret_configs: ['The same by the name of a secret.', 'none', SECRET_DISCOVERY],
      validation_context: ['Which servers are believed.', 'all'],
      validation_context_sds_secret_config: ['The same by the name of a secret.', 'none', SECRET_DISCOVERY],
      combined_validation_context: ['Settings, and a secret that is laid over them.', 'none', TLS_SETTINGS],
      alpn_protocols: ['What the handshake offers.', '`http/1.1` for HTTP, else nothing'],
      key_log: ['A file for the secrets of connections, for whoever has to read them.', 'none', UPSTREAM_TLS_FILES],
    },
  },
  [`${TLS}.CommonTlsContext.CombinedCertificateValidationContext`]: {
    test: TLS_SETTINGS,
    fields: {
      default_validation_context: ['What holds where the secret says nothing.', 'required'],
      validation_context_sds_secret_config: ['What is laid over it.', 'required'],
    },
  },
  [`${TLS}.TlsParameters`]: {
    test: UPSTREAM_TLS,
    fields: {
      tls_minimum_protocol_version: ['The oldest version.', '`TLSv1_2`'],
      tls_maximum_protocol_version: ['The newest version.', '`TLSv1_2`'],
      cipher_suites: ['For TLS 1.2 and older.', BY_SYSTEM, TLS_SETTINGS],
      ecdh_curves: ['For the exchange of keys.', BY_SYSTEM, TLS_SETTINGS],
      signature_algorithms: ['That servers may sign with.', BY_SYSTEM, TLS_SETTINGS],
    },
  },
  [`${TLS}.TlsCertificate`]: {
    test: UPSTREAM_TLS,
    fields: {
      certificate_chain: ['The certificate and those that it leads to, in PEM.', 'required without `pkcs12`'],
      private_key: ['Its key, in PEM.', 'required without `pkcs12`'],
      password: ['Of the key, or the bundle.', 'none', UPSTREAM_TLS_FILES],
      ocsp_staple: ['Nothing: servers are not told.', 'none', TLS_SETTINGS],
      pkcs12: ['Both in one bundle.', 'none', UPSTREAM_TLS_FILES],
      watched_directory: [
        'Nothing: of clusters, files are read when the configuration is loaded.',
        'none',
        TLS_SETTINGS,
      ],
    },
  },
  'proxy.config.core.v3.DataSource (TLS)': {
    test: TLS_SETTINGS,
    fields: {
      filename: ['A file.', 'one of them is required', UPSTREAM_TLS],
      inline_bytes: ['In base64.', 'one of them is required'],
      inline_string: ['As text.', 'one of them is required'],
      watched_directory: ['Nothing: of clusters, files are read when the configuration is loaded.', 'none'],
      environment_variable: ['A variable, read once.', 'one of them is required'],
    },
  },
  [`${TLS}.CertificateValidationContext`]: {
    test: UPSTREAM_TLS,
    fields: {
      trusted_ca: ['Authorities to which the certificate has to lead.', 'none: no chain is verified'],
      verify_certificate_hash: ['SHA-256 of the certificate; one hash of either kind is enough.', 'none'],
      verify_certificate_spki: ['SHA-256 of its public key, in base64.', 'none'],
      verify_subject_alt_name: ['Names of any type, of which the certificate has one.', 'none', TLS_SETTINGS],
      crl: ['Certificates that are no longer believed.', 'none', UPSTREAM_TLS_FILES],
      match_subject_alt_names: ['The same by matchers.', 'none', TLS_SETTINGS],
      trust_chain_verification: [
        '`ACCEPT_UNTRUSTED` goes on whatever the certificate leads to.',
        '`VERIFY_TRUST_CHAIN`',
      ],
      match_typed_subject_alt_names: ['The same by matchers, for names of one type each.', 'none'],
      max_verify_depth: ["Nothing: OpenSSL's own limit holds.", '`100`', TLS_SETTINGS],
      watched_directory: [
        'Nothing: of clusters, files are read when the configuration is loaded.',
        'none',
        TLS_SETTINGS,
      ],
      system_root_certs: ['Believes whom the system believes.', 'none'],
    },
  },
  [`${TLS}.SubjectAltNameMatcher`]: {
    test: UPSTREAM_TLS,
    fields: { san_type: ['`DNS`, `URI`, `EMAIL` or `IP_ADDRESS`.', 'required'], matcher: ['Of the name.', 'required'] },
  },
  [`${TLS}.SdsSecretConfig`]: {
    test: TLS_SETTINGS,
    fields: {
      name: ['Of the secret.', 'required'],
      sds_config: ['Where it comes from, now and later.', 'the secrets of the bootstrap', SECRET_DISCOVERY],
    },
  },
  [`${TLS}.TlsKeyLog`]: {
    test: UPSTREAM_TLS,
    fields: {
      path: ['The file, which lines are appended to.', 'required'],
      local_address_range: ['Only connections from these addresses.', 'all', TLS_SETTINGS],
      remote_address_range: ['Only connections to these addresses.', 'all', TLS_SETTINGS],
    },
  },
};
