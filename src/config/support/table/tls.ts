// Support rows of TLS contexts and secrets. The conversion of a message says what is wrong with what is in it.

import {
  only,
  onlyElseWarned,
  rejected,
  type SupportTable,
  supported,
  supportedAs,
  supportedWhole,
  warned,
} from '../verdict.ts';
import { UPSTREAM_TLS } from './extensions.ts';

const TLS = 'proxy.extensions.transport_sockets.tls.v3';
export const DOWNSTREAM_TLS = `${TLS}.DownstreamTlsContext`;
const SECRET_SOURCE = 'TLS';
const PROVIDERS = 'certificate providers are not there';

/** What secrets of the bootstrap consist of. */
export const SECRET_SUPPORT: SupportTable = {
  [`${TLS}.TlsCertificate`]: {
    otherwise: rejected(),
    fields: {
      private_key_provider: rejected('use private_key'),
      certificate_chain: supportedAs(SECRET_SOURCE),
      private_key: supportedAs(SECRET_SOURCE),
      password: supportedAs(SECRET_SOURCE),
      pkcs12: supportedAs(SECRET_SOURCE),
      ocsp_staple: supportedAs(SECRET_SOURCE),
      signed_certificate_timestamp: warned('certificates carry theirs inside'),
      watched_directory: supportedWhole(),
    },
  },
  [`${TLS}.CertificateValidationContext`]: {
    otherwise: rejected('OpenSSL under Node does not offer it'),
    fields: {
      trusted_ca: supportedAs(SECRET_SOURCE),
      crl: supportedAs(SECRET_SOURCE),
      verify_certificate_hash: supported(),
      verify_certificate_spki: supported(),
      verify_subject_alt_name: supported(),
      match_subject_alt_names: supportedWhole(),
      match_typed_subject_alt_names: supported(),
      trust_chain_verification: supported(),
      system_root_certs: supportedWhole('where the system has none, those that Node brings'),
      watched_directory: supportedWhole(),
      max_verify_depth: onlyElseWarned([100], 'OpenSSL under Node has a limit of its own'),
    },
  },
  [`${TLS}.SubjectAltNameMatcher`]: {
    otherwise: rejected(),
    fields: {
      oid: rejected('names of further kinds are not looked at; use those of DNS, URI, EMAIL or IP_ADDRESS'),
      san_type: only(['EMAIL', 'DNS', 'URI', 'IP_ADDRESS']),
      matcher: supportedWhole(),
    },
  },
  [`${TLS}.TlsSessionTicketKeys`]: { otherwise: rejected(), fields: { keys: supportedAs(SECRET_SOURCE) } },
  [`${TLS}.Secret`]: {
    otherwise: rejected(),
    fields: {
      name: supported(),
      tls_certificate: supported(),
      session_ticket_keys: supported(),
      validation_context: supported(),
      generic_secret: warned('nothing asks for it'),
    },
  },
  'proxy.config.core.v3.DataSource (TLS)': {
    otherwise: rejected(),
    fields: {
      filename: supported(),
      inline_bytes: supported(),
      inline_string: supported(),
      environment_variable: supported(),
      watched_directory: supportedWhole(),
    },
  },
};

/** What asks for them. */
export const TLS_CONTEXT_SUPPORT: SupportTable = {
  [UPSTREAM_TLS]: {
    otherwise: rejected(),
    fields: {
      common_tls_context: supported('with one certificate'),
      sni: supported(),
      allow_renegotiation: supported('where servers ask for it, in TLS 1.2 and older'),
      max_session_keys: supported('of each server and name'),
      enforce_rsa_key_usage: onlyElseWarned([false], 'OpenSSL goes by the usage that a certificate names, anyway'),
      auto_host_sni: supported(),
      auto_sni_san_validation: supported(),
    },
  },
  [DOWNSTREAM_TLS]: {
    otherwise: rejected(),
    fields: {
      common_tls_context: supported(),
      require_client_certificate: supported(),
      require_sni: supported(),
      session_ticket_keys: supported(),
      session_ticket_keys_sds_secret_config: supported(),
      disable_stateless_session_resumption: supported(),
      disable_stateful_session_resumption: supportedWhole('sessions are kept by clients alone'),
      session_timeout: supported('7200s when absent; in TLS 1.3 at most 604800s'),
      ocsp_staple_policy: supported(),
      full_scan_certs_on_sni_mismatch: onlyElseWarned([false], 'the first certificate is presented'),
      prefer_client_ciphers: supported(),
    },
  },
  [`${TLS}.CommonTlsContext`]: {
    otherwise: rejected(),
    fields: {
      deprecated_v1: rejected('use alpn_protocols'),
      custom_handshaker: rejected('handshakes are those of OpenSSL'),
      custom_tls_certificate_selector: rejected('tls_certificates are chosen by server name and kind of key'),
      tls_params: supported(),
      tls_certificates: supported('of servers one of each key type for each name'),
      tls_certificate_sds_secret_configs: supported(),
      validation_context: supported(),
      validation_context_sds_secret_config: supported(),
      combined_validation_context: supported(),
      alpn_protocols: supported(),
      key_log: supported(),
      tls_certificate_certificate_provider: rejected(PROVIDERS),
      tls_certificate_certificate_provider_instance: rejected(PROVIDERS),
      tls_certificate_provider_instance: rejected(PROVIDERS),
      validation_context_certificate_provider: rejected(PROVIDERS),
      validation_context_certificate_provider_instance: rejected(PROVIDERS),
    },
  },
  [`${TLS}.CommonTlsContext.CombinedCertificateValidationContext`]: {
    otherwise: rejected(PROVIDERS),
    fields: { default_validation_context: supported(), validation_context_sds_secret_config: supported() },
  },
  [`${TLS}.TlsParameters`]: {
    otherwise: rejected(),
    fields: {
      compliance_policies: rejected('name versions, cipher_suites and ecdh_curves'),
      tls_minimum_protocol_version: supported(),
      tls_maximum_protocol_version: supported(),
      cipher_suites: supported('of equals in brackets the first goes first; those of TLS 1.3 are fixed'),
      ecdh_curves: supported(),
      signature_algorithms: supported(),
    },
  },
  [`${TLS}.TlsKeyLog`]: {
    otherwise: rejected(),
    fields: { path: supported(), local_address_range: supportedWhole(), remote_address_range: supportedWhole() },
  },
  [`${TLS}.SdsSecretConfig`]: {
    otherwise: rejected(),
    fields: { name: supported(), sds_config: supported('secrets of the bootstrap when absent') },
  },
};
